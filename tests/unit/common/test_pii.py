"""Every kind of structured personal data in its usual dress, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.pii.detector import StructuredDetector, resolve
from services.common.pii.kinds import SPECIFICITY, PiiKind
from services.common.pii.numbers import passes_luhn
from services.common.pii.span import PiiSpan

DETECTOR = StructuredDetector()
# The usual specimens: each passes its check digit, none belongs to anybody.
CARD = "4111111111111111"
CN_ID = "11010519491231002X"


def found(text: str) -> list[tuple[str, str]]:
    return [(str(span.kind), text[span.start : span.end]) for span in DETECTOR.find(text)]


@pytest.mark.parametrize(
    ("kind", "before", "value", "after"),
    [
        ("EMAIL", "write to ", "jane.doe+x@example.co.uk", "."),
        ("EMAIL", "邮箱", "zhang_wei@example.com", "谢谢"),
        ("EMAIL", "邮箱", "ｚｈａｎｇ＠ｅｘａｍｐｌｅ．ｃｏｍ", "，谢谢"),
        ("PHONE", "我的手机是", "13812345678", "请联系"),
        ("PHONE", "电话", "１３８１２３４５６７８", ""),
        ("PHONE", "", "138 1234 5678", ""),
        ("PHONE", "", "138-1234-5678", ""),
        ("PHONE", "拨打", "一三八零零一三八零零零", "即可"),
        ("PHONE", "", "+86 138 1234 5678", ""),
        ("PHONE", "", "138\u200b1234\u200b5678", ""),
        ("PHONE", "座机", "010-62345678", "。"),
        ("PHONE", "客服", "400-820-8820", ""),
        ("PHONE", "call ", "(212) 555-0187", " now"),
        ("PHONE", "", "212.555.0187x204", ""),
        ("PHONE", "", "+44 20 7946 0958", ""),
        ("PHONE", "fax: ", "+46 (0)8 928 571 38", ""),
        ("PHONE", "Phone: ", "9498777106", ""),
        ("CN_RESIDENT_ID", "身份证", CN_ID, "，谢谢"),
        ("CN_RESIDENT_ID", "身份证号：", "１１０１０５１９４９１２３１００２Ｘ", ""),
        ("CN_RESIDENT_ID", "", "110105 19491231 002X", ""),
        ("BANK_CARD", "card ", CARD, " exp 12/30"),
        ("BANK_CARD", "", "4111 1111 1111 1111", ""),
        ("BANK_CARD", "", "3782-822463-10005", ""),
        ("BANK_CARD", "卡号", "6222 0200 0000 0000 000", ""),
        ("IBAN", "to ", "GB82 WEST 1234 5698 7654 32", " today"),
        ("IBAN", "", "de89370400440532013000", ""),
        ("US_SSN", "SSN ", "123-45-6789", ""),
        ("US_SSN", "social security number ", "123 45 6789", ""),
        ("IP_ADDRESS", "服务器", "203.0.113.7", "宕机"),
        ("IP_ADDRESS", "from ", "2001:db8::8a2e:370:7334", ""),
        ("CN_USCC", "税号", "91110000802100433B", ""),
        ("PLATE", "车牌", "京A12345", "违章"),
        ("PLATE", "", "粤B·D12345", ""),
        ("PASSPORT", "护照号码：", "E12345678", ""),
        ("PASSPORT", "Passport No. ", "C01234567", ""),
        ("ACCOUNT", "account number ", "00123456789", ""),
        ("ACCOUNT", "账号：", "6217 0000 1234", ""),
        ("API_KEY", "key=", "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8", ""),
        ("API_KEY", "", "AKIAIOSFODNN7EXAMPLE", ""),
        ("API_KEY", "", "ghp_" + "a1B2c3D4e5" * 4, ""),
        ("SECRET", "", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dGVzdHRlc3Q", ""),
        (
            "SECRET",
            "",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
            "\n",
        ),
        ("SECRET", "api_key: ", "9f8a7b6c5d4e3f2a1b0c", ""),
        ("SECRET", "密码是", "Tr0ub4dor&3", ""),
        ("SECRET", "api_key: ", "9f8a7b6c5d4e3f2a1b0c", ". Thanks"),
        ("API_KEY", "KEY=", "AKIAIOSFODNN7EXAMPLE", ". Thanks"),
        ("API_KEY", "api_key=", "AKIAIOSFODNN7EXAMPLE", ". Thanks"),
    ],
)
def test_finds(kind: str, before: str, value: str, after: str) -> None:
    assert found(before + value + after) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "订单号13812345678",
        "order 2345678901234567 was shipped",
        "tracking number 4111111111111111",
        "快递单号 75123456789012",
        "timestamp 1700000000000",
        "1700000000",
        "2023-11-28 15:30:45.123456",
        "backup-20231128153045.tar",
        "共计12,345,678.90元",
        "total 1 234 567 890 USD",
        "d41d8cd98f00b204e9800998ecf8427e",
        "550e8400-e29b-41d4-a716-446655440000",
        "SKU-4111111111111111",
        "card 4111111111111112",
        "身份证110105194912310021",
        "身份证110105194913310025",
        "GB82 WEST 1234 5698 7654 33",
        "000-12-3456 and 666-12-3456",
        "version 1.2.3.4",
        "http://127.0.0.1:8080/ and 0.0.0.0",
        "256.1.1.1",
        "12:34:56 and aa:bb:cc:dd:ee:ff",
        "std::vector<int>::iterator",
        "0.13812345678",
        "3.14159265358979",
        "numbers: 4 8 15 16 23 42 4 8 15 16 23 42 4 8 15 16",
        "19 100 55 13 81 23 45 67 8 90",
        "2019-2020",
        "ISBN 978-3-16-148410-0",
        "@alice 一二三四五六",
        "91110000802100433A",
        "id 11010519091215646X",
        "the token count is 4096",
        "the secret is patience, the key is practice",
        "pip install sk-learn-pipeline-estimator",
        "",
    ],
)
def test_leaves_alone(text: str) -> None:
    assert found(text) == []


def test_finds_several_in_order() -> None:
    text = f"张三，电话13812345678，身份证{CN_ID}，卡{CARD}，邮箱z@example.com"
    assert [kind for kind, _ in found(text)] == ["PHONE", "CN_RESIDENT_ID", "BANK_CARD", "EMAIL"]


def test_a_list_of_numbers_is_found_one_by_one() -> None:
    assert len(found("13812345678，" * 50)) == 50


def test_the_longest_of_overlapping_finds_stays() -> None:
    spans = [
        PiiSpan("PHONE", 3, 10),
        PiiSpan("BANK_CARD", 0, 12),
        PiiSpan("ACCOUNT", 0, 12),
        PiiSpan("EMAIL", 12, 20),
    ]
    assert resolve(spans) == (PiiSpan("BANK_CARD", 0, 12), PiiSpan("EMAIL", 12, 20))


def test_every_kind_has_a_rank() -> None:
    assert set(SPECIFICITY) == set(PiiKind)


@pytest.mark.parametrize(
    ("digits", "right"), [(CARD, True), (CARD[:-1] + "2", False), ("0" * 16, False)]
)
def test_luhn(digits: str, right: bool) -> None:
    assert passes_luhn(digits) is right


@given(
    st.text(
        alphabet=st.characters() | st.sampled_from("0123456789 -.()+@１一京A\u200b"), max_size=300
    )
)
def test_any_text_gives_ordered_spans_inside_it(text: str) -> None:
    spans = DETECTOR.find(text)
    assert spans == DETECTOR.find(text)
    place = 0
    for span in spans:
        assert place <= span.start < span.end <= len(text)
        place = span.end


@given(
    st.sampled_from(["13812345678", CN_ID, CARD, "zhang@example.com"]),
    st.text("今天天气很好，。 ", max_size=40),
)
def test_chinese_text_around_hides_nothing(value: str, around: str) -> None:
    text = around + value + around
    assert any(text[s.start : s.end] == value for s in DETECTOR.find(text))
