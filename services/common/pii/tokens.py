"""Secrets: keys with a known form, and labelled words that look random."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from services.common.pii.kinds import PiiKind
from services.common.pii.span import PiiSpan

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_\-]{20,200}"
    r"|(?:AKIA|ASIA|AGPA|AROA)[0-9A-Z]{16}(?![0-9A-Z])"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|glpat-[A-Za-z0-9_\-]{20,64}|xox[abeprs]-[A-Za-z0-9\-]{10,250}"
    r"|AIza[0-9A-Za-z_\-]{35}|(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{16,120}"
    r"|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}|LTAI[A-Za-z0-9]{12,24}|SG\.[\w\-]{16,32}\.[\w\-]{30,64}"
    r")"
)
_JWT = re.compile(
    r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{4,}\.[A-Za-z0-9_\-]*"
)
_PEM = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_IS = r"""["']?\s*(?:is|was|[:：=]|是|为|=>)\s*["'`]?"""
_LABELLED = re.compile(
    r"(?:api[_ -]?key|access[_ -]?key(?:[_ -]?id)?|secret(?:[_ -]?(?:access[_ -]?)?key)?"
    rf"|(?:auth|access|refresh|bearer)[_ -]?token|token|client[_ -]?secret|密钥|令牌|秘钥){_IS}"
    r"([A-Za-z0-9_\-+/=.~]{16,256})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\bBearer\s+([A-Za-z0-9_\-+/=.~]{16,512})")
_PASSWORD = re.compile(
    rf"(?:password|passwd|passphrase|\bpwd|密码|口令){_IS}([!-~]{{6,128}})", re.IGNORECASE
)
# Bits a character above which a word of 16 characters is not natural language.
_RANDOM_BITS = 3.0


def find_secrets(text: str) -> Iterator[PiiSpan]:
    """API keys, tokens, private keys and labelled passwords."""
    for found in _KEY.finditer(text):
        word = found.group()
        # Mixed letters are enough; `sk-learn-pipeline-estimator` is neither.
        if any(char.isdigit() for char in word) or not (word.islower() or word.isupper()):
            yield PiiSpan(PiiKind.API_KEY, *found.span())
    if "eyJ" in text:
        for found in _JWT.finditer(text):
            yield PiiSpan(PiiKind.SECRET, *found.span())
    if "-----BEGIN" in text:
        yield from _private_keys(text)
    yield from _labelled(text)


def _private_keys(text: str) -> Iterator[PiiSpan]:
    """From each header to its end; without one, to the end of the text."""
    place = 0
    while (begin := _PEM.search(text, place)) is not None:
        end = _PEM_END.search(text, begin.end())
        place = end.end() if end else len(text)
        yield PiiSpan(PiiKind.SECRET, begin.start(), place)


def _labelled(text: str) -> Iterator[PiiSpan]:
    for pattern in (_LABELLED, _BEARER):
        for found in pattern.finditer(text):
            # A full stop behind it ends the sentence.
            word = found.group(1).rstrip(".")
            if _looks_random(word):
                yield PiiSpan(PiiKind.SECRET, found.start(1), found.start(1) + len(word))
    for found in _PASSWORD.finditer(text):
        word = found.group(1).rstrip(".,;!?\"'`)")
        if len(word) >= 6 and any(c.isdigit() for c in word) and not word.isdigit():
            yield PiiSpan(PiiKind.SECRET, found.start(1), found.start(1) + len(word))


def _looks_random(word: str) -> bool:
    if not (any(char.isdigit() for char in word) and any(char.isalpha() for char in word)):
        return False
    counts = Counter(word)
    bits = -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
    return bits >= _RANDOM_BITS
