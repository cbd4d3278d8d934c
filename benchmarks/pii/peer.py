"""Runs in a peer's own environment: texts on standard input, spans on standard output, as JSON.

Imports nothing of ours, so that neither side's packages meet the other's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

# Names of types as the peers give them, and ours; what is not here is no structured type.
_PRESIDIO = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "CREDIT_CARD": "BANK_CARD",
    "IBAN_CODE": "IBAN",
    "US_SSN": "US_SSN",
    "US_ITIN": "US_SSN",
    "IP_ADDRESS": "IP_ADDRESS",
    "US_PASSPORT": "PASSPORT",
    "US_BANK_NUMBER": "ACCOUNT",
}
_ARGUS = {
    "phone": "PHONE",
    "mobile": "PHONE",
    "landline": "PHONE",
    "us_phone": "PHONE",
    "email": "EMAIL",
    "id_number": "CN_RESIDENT_ID",
    "bank_card": "BANK_CARD",
    "credit_card": "BANK_CARD",
    "iban": "IBAN",
    "ssn": "US_SSN",
    "us_ssn": "US_SSN",
    "ip_address": "IP_ADDRESS",
    "ip": "IP_ADDRESS",
    "license_plate": "PLATE",
    "passport": "PASSPORT",
    "us_passport": "PASSPORT",
    "uscc": "CN_USCC",
    "credit_code": "CN_USCC",
    "api_key": "API_KEY",
    "secret": "SECRET",
    "password": "SECRET",
    "bank_account": "ACCOUNT",
}
Found = list[tuple[str, int, int]]


def presidio() -> Callable[[str], Found]:
    """Its default recognizers for English, without a language model."""
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    nlp = {
        "nlp_engine_name": "no_op",
        "models": [{"lang_code": "en", "model_name": "no_op"}],
    }
    engine = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=nlp).create_engine())

    def find(text: str) -> Found:
        found = engine.analyze(text=text, language="en", score_threshold=0.35)
        return [
            (_PRESIDIO[one.entity_type], one.start, one.end)
            for one in found
            if one.entity_type in _PRESIDIO
        ]

    return find


def argus() -> Callable[[str], Found]:
    """Its fast mode, English and Chinese."""
    import argus_redact

    def find(text: str) -> Found:
        report: Any = argus_redact.redact(text, mode="fast", lang=["zh", "en"], report=True)
        return [
            (_ARGUS[one["type"]], one["start"], one["end"])
            for one in report.entities
            if one["type"] in _ARGUS
        ]

    return find


def main() -> None:
    """Finds in every text, and takes the time of each."""
    find = {"presidio": presidio, "argus": argus}[sys.argv[1]]()
    texts: list[str] = json.load(sys.stdin)
    find(texts[0])
    found, took = [], []
    for text in texts:
        began = time.perf_counter()
        found.append(find(text))
        took.append((time.perf_counter() - began) * 1000.0)
    sys.stdout.write("\n" + json.dumps({"found": found, "ms": took}) + "\n")


if __name__ == "__main__":
    main()
