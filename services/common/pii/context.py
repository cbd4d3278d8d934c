"""What stands beside a number: the words that say what it is."""

from __future__ import annotations

import re

_WINDOW = 48

_PHONE = re.compile(
    r"(?:phone|mobile|cell(?:ular)?|\btel\b|telephone|\bfax\b|\bdesk\b|\boffice\b(?= ?[:：])"
    r"|whatsapp|wechat|hotline"
    r"|\bph\b|contact|\bmy (?:\w+ )?number\b"
    r"|\bcall(?:ed|ing)?\b|\bdial\b|\breach\b|\btext(?:ed)?\b|\bsms\b|\bring\b|answering"
    r"|registered|messages? (?:to|on|at)"
    r"|电话|手机|座机|联系|致电|拨打|来电|号码|传真|微信|热线|打给|回电|短信|预留)"
    r"[^\d]{0,25}$",
    re.IGNORECASE,
)
_PHONE_AFTER = re.compile(
    r"^[ ]?[-(]?\s?(?:office|fax|mobile|cell|home|work|desk|手机|电话)\b", re.IGNORECASE
)
_CODE = re.compile(
    r"(?:order|invoice|tracking|ticket|\bcase\b|\bref(?:erence)?\b|transaction|\btxn\b|\bsku\b|serial"
    r"|batch|model|\bpart\b|isbn|issn|version|build|commit|timestamp|epoch|amount|total|price|balance"
    r"|\bqty\b|quantity|\bbarcode\b|\bzip\b|postcode|population|revision|\btrace\b|\brequest\b|\bdate\b"
    r"|订单|单号|流水|编号|快递|运单|工单|发票|批次|批号|序列|型号|版本|时间戳|金额|总额|总计|条码|邮编|货号|数量)"
    r"[^\d\n,，。;；]{0,12}$",
    re.IGNORECASE,
)
_CARD = re.compile(
    r"(?:\bcard\b|\bcc\b|credit|debit|visa|mastercard|amex|unionpay|卡号|银行卡|信用卡|储蓄卡|借记卡|银联)[^\d]{0,25}$",
    re.IGNORECASE,
)
_SSN = re.compile(
    r"(?:\bssn\b|social security|\bitin\b|社会安全号|社安号)[^\d]{0,25}$", re.IGNORECASE
)
_MONEY_BEFORE = re.compile(r"(?:[$€£¥￥]|\b(?:usd|eur|gbp|cny|rmb)|人民币) ?\Z", re.IGNORECASE)
_MONEY_AFTER = re.compile(
    r"^\s?(?:[€元块万亿%]|usd|eur|gbp|cny|rmb|dollars|tokens?|bytes|[kmg]b\b|ms\b)", re.IGNORECASE
)
_GLUED_CODE = re.compile(r"[A-Za-z_][-_#/.]?\Z")


def before(text: str, start: int) -> str:
    """The words in front of `start`."""
    return text[max(0, start - _WINDOW) : start]


def names_phone(text: str, start: int, end: int) -> bool:
    """Whether the words beside say that this is a telephone number, and none nearer denies it."""
    left = before(text, start)
    found = _PHONE.search(left)
    if found is None:
        return _PHONE_AFTER.match(text[end : end + 12]) is not None
    denied = _CODE.search(left)
    return denied is None or denied.start() < found.start()


def names_code(text: str, start: int) -> bool:
    """Whether the words in front say order number, amount, version or the like."""
    return _CODE.search(before(text, start)) is not None


def names_card(text: str, start: int) -> bool:
    """Whether the words in front say bank card."""
    return _CARD.search(before(text, start)) is not None


def names_ssn(text: str, start: int) -> bool:
    """Whether the words in front say social security number."""
    return _SSN.search(before(text, start)) is not None


def is_money(text: str, start: int, end: int) -> bool:
    """Whether a currency or a unit stands beside."""
    return (
        _MONEY_BEFORE.search(text[max(0, start - 6) : start]) is not None
        or _MONEY_AFTER.match(text[end : end + 10]) is not None
    )


def is_fraction(text: str, start: int) -> bool:
    """Whether the digits stand behind a decimal point."""
    return start >= 2 and text[start - 1] == "." and text[start - 2].isdigit()


def glued_to_letters(text: str, start: int, end: int) -> bool:
    """Whether the number is part of a code such as `SKU-123` or a hash."""
    if _GLUED_CODE.search(text[max(0, start - 2) : start]):
        return True
    after = text[end : end + 1]
    return after == "_" or (after.isascii() and after.isalpha())
