"""Made-up values of each kind, with right check digits, as people write them."""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

from stdnum import iban, luhn
from stdnum.cn import ric, uscc

Make = Callable[[Random], str]
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_CHINESE = str.maketrans("0123456789", "零一二三四五六七八九")
_WORD = string.ascii_letters + string.digits
_CARDS = (
    ("4", 16), ("51", 16), ("2223", 16), ("34", 15), ("37", 15), ("6011", 16), ("3530", 16),
    ("622202", 19), ("621700", 19), ("622848", 19), ("6225", 16), ("955880", 19),
)  # fmt: skip
_IBANS = (("GB", "NWBK", 14), ("DE", "", 18), ("FR", "", 23), ("NL", "ABNA", 10), ("ES", "", 20))
_AREAS = ("110105", "310104", "440305", "510107", "330106", "420111", "120101")
# The leading part of what a country code makes of a number; the rest is drawn.
_ABROAD = (
    "+44 20 79## ####",
    "+49 30 ########",
    "+33 6 ## ## ## ##",
    "+81 3-####-####",
    "+852 2### ####",
)


def digits(draw: Random, count: int) -> str:
    """So many random digits."""
    return "".join(draw.choices(string.digits, k=count))


def word(draw: Random, count: int) -> str:
    """So many random letters and digits, one digit at least."""
    return "".join(draw.choices(_WORD, k=count - 1)) + draw.choice(string.digits)


def full_width(text: str) -> str:
    """ASCII in its full-width form."""
    return text.translate(_FULL_WIDTH)


def grouped(text: str, *sizes: int, by: str = " ") -> str:
    """`text` cut into groups; the last size goes on to the end."""
    parts: list[str] = []
    place = 0
    while place < len(text):
        size = sizes[min(len(parts), len(sizes) - 1)]
        parts.append(text[place : place + size])
        place += size
    return by.join(parts)


def mobile(draw: Random) -> str:
    """A mobile number of mainland China."""
    plain = "1" + draw.choice("3456789") + digits(draw, 9)
    return draw.choice(
        [
            plain,
            plain,
            full_width(plain),
            grouped(plain, 3, 4),
            grouped(plain, 3, 4, by="-"),
            f"+86 {plain}",
            f"+86{plain}",
            f"86-{plain}",
            plain.translate(_CHINESE),
        ]
    )


def landline(draw: Random) -> str:
    """A landline of mainland China."""
    head = draw.choice(["010-6", "021-5", "020-8", "(010)6", "0571-8", "0755-2"])
    return head + digits(draw, 7)


def us_phone(draw: Random) -> str:
    """A number of the United States."""
    area = draw.choice(["212", "415", "617", "303", "206"])
    exchange, line = draw.choice("23456789") + digits(draw, 2), digits(draw, 4)
    form = draw.choice(
        ["{}-{}-{}", "({}) {}-{}", "{}.{}.{}", "+1 {} {} {}", "+1{}{}{}", "1-{}-{}-{}"]
    )
    return form.format(area, exchange, line)


def phone_abroad(draw: Random) -> str:
    """A number with its country code."""
    return "".join(digits(draw, 1) if c == "#" else c for c in draw.choice(_ABROAD))


def resident_id(draw: Random) -> str:
    """A resident identity number with its check character."""
    born = f"{draw.randint(1940, 2015)}{draw.randint(1, 12):02d}{draw.randint(1, 28):02d}"
    plain = draw.choice(_AREAS) + born + digits(draw, 3)
    plain += ric.calc_check_digit(plain + "0")
    return draw.choice(
        [
            plain,
            plain,
            plain.lower(),
            full_width(plain),
            grouped(plain, 6, 8, 4),
            grouped(plain, 6, 8, 4, by="-"),
        ]
    )


def card(draw: Random) -> str:
    """A bank card that passes Luhn."""
    prefix, size = draw.choice(_CARDS)
    plain = prefix + digits(draw, size - len(prefix) - 1)
    plain += luhn.calc_check_digit(plain)
    if size == 15:
        return draw.choice([plain, grouped(plain, 4, 6, 5)])
    return draw.choice(
        [plain, grouped(plain, 4), grouped(plain, 4, by="-") if size == 16 else plain]
    )


def iban_number(draw: Random) -> str:
    """An IBAN with its check digits."""
    country, bank, count = draw.choice(_IBANS)
    account = bank + digits(draw, count)
    plain = country + iban.calc_check_digits(f"{country}00{account}") + account
    return draw.choice([plain, grouped(plain, 4), plain.lower()])


def ssn(draw: Random) -> str:
    """A social security number of the United States."""
    return f"{draw.randint(1, 665):03d}-{draw.randint(1, 99):02d}-{draw.randint(1, 9999):04d}"


def ip_address(draw: Random) -> str:
    """An address of a host."""
    if draw.random() < 0.6:
        return ".".join(str(draw.randint(1, 223)) for _ in range(4)).replace("127.", "128.", 1)
    if draw.random() < 0.5:
        return ":".join(f"{draw.randint(1, 65535):x}" for _ in range(8))
    return f"2001:db8::{draw.randint(1, 9999):x}:{draw.randint(1, 9999):x}"


def company_code(draw: Random) -> str:
    """A unified social credit code with its check character."""
    plain = (
        "91" + draw.choice(_AREAS) + "".join(draw.choices("0123456789ABCDEFGHJKLMNPQRTUWXY", k=9))
    )
    return plain + str(uscc.calc_check_digit(plain))


def plate(draw: Random) -> str:
    """A number plate of mainland China."""
    number = draw.choice(
        [digits(draw, 5), "D" + digits(draw, 5), digits(draw, 2) + "K" + digits(draw, 2)]
    )
    return draw.choice("京沪粤浙苏川") + draw.choice("ABCDE") + draw.choice(["", "·", " "]) + number


def email(draw: Random) -> str:
    """An e-mail address."""
    user = draw.choice(["zhang.wei", "j.doe+x", "li_na88", "anna-b", "BOB"]) + digits(draw, 2)
    hosts = ["example.com", "mail.example.co.uk", "example.cn", "qq.example.net"]
    return f"{user}@{draw.choice(hosts)}"


def passport(draw: Random) -> str:
    """A passport number, Chinese or of the United States."""
    return draw.choice(
        [
            "E" + digits(draw, 8),
            "EA" + digits(draw, 7),
            "G" + digits(draw, 8),
            "C" + digits(draw, 8),
        ]
    )


def account(draw: Random) -> str:
    """An account number without any check digit."""
    return draw.choice("123456789") + digits(draw, draw.randint(8, 11))


def api_key(draw: Random) -> str:
    """A key with the form of its issuer."""
    return draw.choice(
        [
            "sk-" + word(draw, 40),
            "sk-proj-" + word(draw, 40),
            "AKIA" + "".join(draw.choices(string.ascii_uppercase + "234567", k=16)),
            "ghp_" + word(draw, 36),
            "AIza" + word(draw, 35),
            "glpat-" + word(draw, 20),
        ]
    )


def secret(draw: Random) -> str:
    """A token that only its label gives away."""
    return "aB3" + word(draw, 20)


def password(draw: Random) -> str:
    """A password with letters, digits and a sign."""
    return word(draw, 9) + "!x"
