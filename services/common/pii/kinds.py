"""The closed set of structured kinds, and which of two finds of equal length wins."""

from __future__ import annotations

from enum import StrEnum


class PiiKind(StrEnum):
    """What a span is; the values are what logs, labels and rules show."""

    EMAIL = "EMAIL"
    PHONE = "PHONE"
    CN_RESIDENT_ID = "CN_RESIDENT_ID"
    BANK_CARD = "BANK_CARD"
    IBAN = "IBAN"
    US_SSN = "US_SSN"
    IP_ADDRESS = "IP_ADDRESS"
    CN_USCC = "CN_USCC"
    PLATE = "PLATE"
    PASSPORT = "PASSPORT"
    ACCOUNT = "ACCOUNT"
    API_KEY = "API_KEY"
    SECRET = "SECRET"  # noqa: S105 - the name of a kind


# Among finds of equal length the one that proves most wins: a known format or a
# check digit before a label, a label before a mere shape.
SPECIFICITY: dict[str, int] = {
    kind: rank
    for rank, kind in enumerate(
        (
            PiiKind.API_KEY,
            PiiKind.SECRET,
            PiiKind.EMAIL,
            PiiKind.CN_RESIDENT_ID,
            PiiKind.CN_USCC,
            PiiKind.IBAN,
            PiiKind.BANK_CARD,
            PiiKind.IP_ADDRESS,
            PiiKind.US_SSN,
            PiiKind.PASSPORT,
            PiiKind.PLATE,
            PiiKind.PHONE,
            PiiKind.ACCOUNT,
        )
    )
}
