"""Which values share a placeholder, and which names are not given out."""

from __future__ import annotations

import pytest

from services.cloud_proxy.redaction.placeholders import compact, escape_depth, name_of, write
from services.cloud_proxy.redaction.vault import Vault, canonical


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("PHONE", "138 1234-5678", "１３８１２３４５６７８", True),
        ("PHONE", "13812345678", "+8613812345678", False),
        ("IBAN", "gb82 west 1234 5698 7654 32", "GB82WEST12345698765432", True),
        ("EMAIL", "Jo@Example.com", "jo@example.com", True),
        ("EMAIL", "j.o@example.com", "jo@example.com", False),
        ("IP_ADDRESS", "1.12.1.1", "11.2.1.1", False),
        ("SECRET", "aB3-x", "ab3-x", False),
        ("PLATE", "京A·12345", "京A12345", True),
    ],
)
def test_spellings(kind: str, one: str, other: str, same: bool) -> None:
    assert (canonical(kind, one) == canonical(kind, other)) is same


def test_numbers_of_the_caller_are_left_out() -> None:
    vault = Vault()
    vault.reserve("[PHONE_1] 【phone 2】 \\u005bPHONE_3\\u005d **PHONE_4** \\[Phone\\_5\\] phone_6")
    assert vault.placeholder("PHONE", "13812345678") == "[PHONE_6]"
    assert vault.placeholder("PHONE", "13987654321") == "[PHONE_7]"
    assert vault.placeholder("PHONE", "138 1234 5678") == "[PHONE_6]"
    assert vault.placeholder("EMAIL", "jo@example.com") == "[EMAIL_1]"
    assert vault.values == {
        "PHONE6": "13812345678", "PHONE7": "13987654321", "EMAIL1": "jo@example.com"
    }  # fmt: skip


def test_repeats_are_whole_words() -> None:
    vault = Vault()
    vault.placeholder("ACCOUNT", "123456")
    text = "123456, 9123456, x123456, 1234567, 账号123456。１２３４５６"
    assert [text[s.start : s.end] for s in vault.repeats(text)] == [
        "123456",
        "123456",
        "１２３４５６",
    ]


def test_short_values_are_not_searched_again() -> None:
    vault = Vault()
    vault.placeholder("PERSON", "Jo")
    assert list(vault.repeats("Jo and Jo")) == []


def test_names() -> None:
    assert write("CN_RESIDENT_ID", 12) == "[CN_RESIDENT_ID_12]"
    assert name_of("ipv4 address") == "IPV_ADDRESS"
    assert name_of("42") == "VALUE"
    assert compact("Api\\_key\\u005f 1") == "APIKEY1"
    assert [escape_depth(t) for t in ("[A_1]", "\\u005bA", "\\\\u005bA", "\\\\\\\\U005b")] == [
        0,
        1,
        2,
        3,
    ]
