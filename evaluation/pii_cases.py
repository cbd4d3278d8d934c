"""Generates labelled texts, Chinese and English: true values, and numbers that only look so.

The same count and seed give the same texts, with these packages' versions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random

from stdnum import luhn
from stdnum.cn import ric

from evaluation import pii_values as make
from evaluation.pii_data import Case, Label
from evaluation.pii_values import Make, digits, word
from services.common.pii.kinds import PiiKind

# One text in so many holds a near miss and nothing else.
_NEAR_MISS_SHARE = 0.4
_CHATTER = ("", "", "您好，", "Hi, ", "备注：", "Please note: ", "【系统】")
_ENDS = ("", "", "。谢谢", ". Thanks!", "，请尽快处理", " (see below)")

TRUE: tuple[tuple[PiiKind, Make, tuple[str, ...]], ...] = (
    (
        PiiKind.PHONE,
        make.mobile,
        (
            "我的手机是{}请联系",
            "联系电话：{}",
            "拨打{}即可",
            "收件人张三 {} 北京市海淀区",
            "call me at {} please",
        ),
    ),
    (PiiKind.PHONE, make.landline, ("座机{}", "电话:{}", "公司电话是{}")),
    (
        PiiKind.PHONE,
        make.us_phone,
        ("Call me at {} tomorrow", "My number is {}", "Phone {}", "reach us: {} or email"),
    ),
    (PiiKind.PHONE, make.phone_abroad, ("Call {} now", "Tel: {}", "{}", "电话{}")),
    (
        PiiKind.CN_RESIDENT_ID,
        make.resident_id,
        ("身份证{}", "身份证号码：{}，请核对", "ID number {} belongs to him", "{}"),
    ),
    (
        PiiKind.BANK_CARD,
        make.card,
        ("card {}", "my card number is {} exp 12/27", "卡号{}", "请转到{}这张卡", "信用卡{}被盗刷"),
    ),
    (PiiKind.IBAN, make.iban_number, ("IBAN: {}", "transfer to {} today", "{}")),
    (PiiKind.US_SSN, make.ssn, ("SSN: {}", "my social is {}", "social security number {} on file")),
    (
        PiiKind.IP_ADDRESS,
        make.ip_address,
        ("host {} is down", "IP地址{}无法访问", "from {} port 22", "服务器{}宕机"),
    ),
    (PiiKind.CN_USCC, make.company_code, ("统一社会信用代码{}", "税号：{}", "公司代码{}开票")),
    (PiiKind.PLATE, make.plate, ("车牌{}", "我的车是{}", "车牌号：{}，违章", "{}停在门口")),
    (PiiKind.EMAIL, make.email, ("邮箱{}谢谢", "mail {}", "请发到{}，谢谢", "<{}>", "mailto:{}")),
    (
        PiiKind.PASSPORT,
        make.passport,
        ("护照{}", "护照号码：{}", "passport number {}", "Passport No. {}"),
    ),
    (PiiKind.ACCOUNT, make.account, ("account number {}", "账号：{}", "银行账户{}", "acct #{}")),
    (PiiKind.API_KEY, make.api_key, ("key {}", "OPENAI_API_KEY={}", "用这个密钥{}试试")),
    (PiiKind.SECRET, make.secret, ("api_key={}", 'client_secret: "{}"', "access token is {}")),
    (PiiKind.SECRET, make.password, ("password: {}", "密码是{}", "pwd={}")),
)


def _wrong_last(plain: str, right: str, alphabet: str, draw: Random) -> str:
    return plain + draw.choice([char for char in alphabet if char != right])


def _wrong_card(draw: Random) -> str:
    plain = "4" + digits(draw, 14)
    return _wrong_last(plain, luhn.calc_check_digit(plain), "0123456789", draw)


def _wrong_id(draw: Random) -> str:
    born = f"19{digits(draw, 1)}{draw.randint(1, 9)}{draw.randint(10, 12)}{draw.randint(10, 28)}"
    plain = "110105" + born + digits(draw, 3)
    return _wrong_last(plain, ric.calc_check_digit(plain + "0"), "0123456789X", draw)


def _order(draw: Random) -> str:
    return digits(draw, draw.randint(8, 20))


def _timestamp(draw: Random) -> str:
    return str(draw.randint(1_500_000_000, 1_900_000_000)) + draw.choice(["", "000", "123"])


def _moment(draw: Random) -> str:
    form = draw.choice(
        [
            "{}-{:02d}-{:02d} {:02d}:{:02d}",
            "{}{:02d}{:02d}{:02d}{:02d}",
            "{}/{:02d}/{:02d} {:02d}:{:02d}",
        ]
    )
    day = draw.randint(1990, 2030), draw.randint(1, 12), draw.randint(1, 28)
    return form.format(*day, draw.randint(0, 23), draw.randint(0, 59))


def _amount(draw: Random) -> str:
    return f"{draw.randint(1, 999_999_999):,}.{digits(draw, 2)}"


def _hash(draw: Random) -> str:
    return f"{draw.getrandbits(160):040x}"


def _uuid(draw: Random) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128)))


def _version(draw: Random) -> str:
    return ".".join(str(draw.randint(0, 99)) for _ in range(4))


def _numbers(draw: Random) -> str:
    return " ".join(str(draw.randint(0, 100)) for _ in range(draw.randint(5, 20)))


def _isbn(draw: Random) -> str:
    return f"978-{digits(draw, 1)}-{digits(draw, 2)}-{digits(draw, 6)}-{digits(draw, 1)}"


NEAR_MISSES: tuple[tuple[Make, tuple[str, ...]], ...] = (
    (
        _order,
        (
            "order {} shipped",
            "订单号{}",
            "订单编号：{}已发货",
            "tracking number {}",
            "流水号：{}",
            "invoice #{}",
        ),
    ),
    (_timestamp, ("timestamp {}", "ts={}", "时间戳{}")),
    (_moment, ("at {}", "时间{}", "backup-{}.tar")),
    (_amount, ("共{}元", "total ${}", "price {} USD", "余额{}元")),
    (_hash, ("commit {}", "sha1:{}", "{}")),
    (_uuid, ("id {}", "request_id={}", "{}")),
    (_wrong_card, ("number {}", "编号{}", "card {}", "卡号{}")),
    (_wrong_id, ("身份证{}", "id {}", "{}")),
    (_version, ("version {}", "v{}", "版本{}")),
    (_numbers, ("numbers: {}", "scores {}")),
    (_isbn, ("ISBN {}", "书号{}")),
    (lambda draw: "@" + word(draw, 8), ("hi {}", "follow {} now")),
    (lambda draw: word(draw, 8), ("token count {}", "the secret is {}", "the key is {}")),
)


def generate(count: int, seed: int) -> list[Case]:
    """`count` texts, kinds in turn, so that each has its share."""
    draw = Random(seed)  # noqa: S311 - for test data
    true, near = _turns(len(TRUE)), _turns(len(NEAR_MISSES))
    return [
        _near_miss(draw, next(near))
        if draw.random() < _NEAR_MISS_SHARE
        else _true(draw, next(true))
        for _ in range(count)
    ]


def _turns(size: int) -> Iterator[int]:
    while True:
        yield from range(size)


def _true(draw: Random, turn: int) -> Case:
    kind, maker, templates = TRUE[turn]
    value = maker(draw)
    before, after = draw.choice(templates).split("{}")
    head = draw.choice(_CHATTER) + before
    label = Label(kind.value, len(head), len(head) + len(value))
    return Case(head + value + after + draw.choice(_ENDS), (label,))


def _near_miss(draw: Random, turn: int) -> Case:
    maker, templates = NEAR_MISSES[turn]
    text = draw.choice(templates).replace("{}", maker(draw))
    return Case(draw.choice(_CHATTER) + text + draw.choice(_ENDS), ())
