"""Figures of a pair of texts for a verifier: overlap, order, alignment, what differs. Symmetric.

`Corpus` holds what is learnt from a task's texts (how telling a word is); word vectors come from
the sentence embedder, a word at a time, and are kept.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.common.similarity.guards import GUARDS, content_units
from services.common.similarity.words import Words, common_places, compare, is_cjk, words_of

Floats = NDArray[np.float32]
EmbedWords = Callable[[Sequence[str]], Floats]

NAMES: Final = (
    "cosine", "jaccard", "idf_jaccard", "idf_contained_low", "idf_contained_high",
    "content_jaccard", "bigrams", "chars2", "chars3", "chars4", "subsequence",
    "length_gap", "length_ratio", "length_low", "length_high", "same_first", "same_last",
    "prefix", "suffix", "only_low", "only_high", "only_idf_low", "only_idf_high",
    "only_idf_max_low", "only_idf_max_high", "swaps", "one_sided", "moved",
    "aligned_mean_low", "aligned_mean_high", "aligned_min_low", "aligned_min_high",
    "rest_cosine", "bag_cosine", "rest_share", "negations", "first_two", "content_only_low",
    "content_only_high", "content_last_same", "idf_content_cos",
    *(f"guard_{name}" for name in GUARDS),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Corpus:
    """How telling each unit is: log((1 + texts) / (1 + texts with it)) + 1."""

    idf: Mapping[str, float]
    unseen: float

    @classmethod
    def of(cls, texts: Iterable[str]) -> Corpus:
        """Counts the units of distinct texts."""
        seen: Counter[str] = Counter()
        total = 0
        for text in set(texts):
            total += 1
            seen.update(set(words_of(text).units))
        idf = {unit: math.log((1 + total) / (1 + n)) + 1 for unit, n in seen.items() if n > 1}
        return cls(idf, math.log((1 + total) / 2) + 1)

    def weight(self, unit: str) -> float:
        """Weight of a unit; an unseen one is as telling as one seen once."""
        return self.idf.get(unit, self.unseen)

    def mass(self, units: Iterable[str]) -> float:
        """Sum of the weights."""
        return sum(map(self.weight, units))


@dataclass(slots=True)
class WordVectors:
    """Vectors of single units, kept while they are used."""

    embed: EmbedWords
    max_words: int = 50_000
    _kept: OrderedDict[str, Floats] = field(default_factory=OrderedDict)

    def of(self, units: Sequence[str]) -> Floats:
        """[units, 512], of unit length."""
        missing = [unit for unit in dict.fromkeys(units) if unit not in self._kept]
        for start in range(0, len(missing), _EMBED_BATCH):
            batch = missing[start : start + _EMBED_BATCH]
            self._kept.update(zip(batch, self.embed(batch), strict=True))
        found = np.stack([self._kept[unit] for unit in units]) if units else _NO_WORDS
        while len(self._kept) > self.max_words:
            self._kept.popitem(last=False)
        return found


_EMBED_BATCH = 64
_NO_WORDS: Final[Floats] = np.zeros((0, 512), np.float32)


def pair_features(a: str, b: str, cosine: float, corpus: Corpus, vectors: WordVectors) -> Floats:
    """[len(NAMES)] figures; the same for (a, b) and (b, a)."""
    left, right = words_of(a), words_of(b)
    values = [
        cosine,
        *_overlap(left, right, corpus),
        *_shape(left, right),
        *_differing(left, right, corpus, vectors),
        *(float(guard(left, right)) for guard in GUARDS.values()),
    ]
    return np.array(values, np.float32)


def text_vector(text: str, vector: Floats, corpus: Corpus, vectors: WordVectors) -> Floats:
    """[1024]: the sentence's own vector, and the weighted sum of its words' in unit length."""
    bag = _bag(words_of(text).units, corpus, vectors)
    joined: Floats = np.concatenate([vector, bag / max(float(np.linalg.norm(bag)), 1e-6)])
    return joined


def _overlap(a: Words, b: Words, corpus: Corpus) -> list[float]:
    set_a, set_b = set(a.units), set(b.units)
    shared = corpus.mass(set_a & set_b)
    mass_a, mass_b = corpus.mass(set_a), corpus.mass(set_b)
    contained = sorted((shared / (mass_a or 1), shared / (mass_b or 1)))
    return [
        _jaccard(set_a, set_b),
        shared / ((mass_a + mass_b - shared) or 1),
        *contained,
        _jaccard(set(content_units(a)), set(content_units(b))),
        _jaccard(set(_grams(a.units, 2)), set(_grams(b.units, 2))),
        *(_jaccard(set(_grams(a.text, n)), set(_grams(b.text, n))) for n in (2, 3, 4)),
    ]


def _shape(a: Words, b: Words) -> list[float]:
    size_a, size_b = len(a.units), len(b.units)
    longest = max(size_a, size_b) or 1
    return [
        2 * len(common_places(a.units, b.units)) / ((size_a + size_b) or 1),
        abs(size_a - size_b),
        min(size_a, size_b) / longest,
        min(size_a, size_b),
        longest,
        float(a.units[:1] == b.units[:1]),
        float(a.units[-1:] == b.units[-1:]),
        _same_until(a.units, b.units) / longest,
        _same_until(a.units[::-1], b.units[::-1]) / longest,
    ]


def _differing(a: Words, b: Words, corpus: Corpus, vectors: WordVectors) -> list[float]:
    difference = compare(a.units, b.units)
    only_a, only_b = difference.only_a, difference.only_b
    masses = sorted((corpus.mass(only_a), corpus.mass(only_b)))
    tops = sorted(max(map(corpus.weight, only), default=0.0) for only in (only_a, only_b))
    sides = [bool(here) and bool(there) for here, there in difference.swaps]
    content_a, content_b = content_units(a), content_units(b)
    content = compare(content_a, content_b)
    moved = len(content_a) - len(content.only_a) - len(common_places(content_a, content_b))
    return [
        *sorted((len(only_a), len(only_b))),
        *masses,
        *tops,
        sum(sides),
        len(sides) - sum(sides),
        moved,
        *_aligned(only_a, only_b, corpus, vectors),
        _cosine(_bag(only_a, corpus, vectors), _bag(only_b, corpus, vectors)),
        _cosine(_bag(a.units, corpus, vectors), _bag(b.units, corpus, vectors)),
        sum(masses) / ((corpus.mass(a.units) + corpus.mass(b.units)) or 1),
        float(any(is_cjk(unit) for unit in a.units)),
        float(a.units[:2] == b.units[:2]),
        *sorted((len(content.only_a), len(content.only_b))),
        float(content_a[-1:] == content_b[-1:]),
        _cosine(_bag(content_a, corpus, vectors), _bag(content_b, corpus, vectors)),
    ]


def _aligned(
    only_a: Sequence[str], only_b: Sequence[str], corpus: Corpus, vectors: WordVectors
) -> list[float]:
    """How well each differing unit is met by one of the other side, by weight: means, minima."""
    if not only_a and not only_b:
        return [1.0, 1.0, 1.0, 1.0]
    if not only_a or not only_b:
        return [0.0, 1.0, 0.0, 1.0]
    table = vectors.of(only_a) @ vectors.of(only_b).T
    means, minima = [], []
    for best, units in ((table.max(1), only_a), (table.max(0), only_b)):
        weights = np.array([corpus.weight(unit) for unit in units])
        means.append(float(best @ weights / weights.sum()))
        minima.append(float(best.min()))
    return [*sorted(means), *sorted(minima)]


def _bag(units: Sequence[str], corpus: Corpus, vectors: WordVectors) -> Floats:
    weights = np.array([corpus.weight(unit) for unit in units], np.float32)
    total: Floats = weights @ vectors.of(units) if len(units) else np.zeros(512, np.float32)
    return total


def _cosine(a: Floats, b: Floats) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size else 0.0


def _jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


def _grams(units: Sequence[str], size: int) -> list[str]:
    return ["\0".join(units[at : at + size]) for at in range(len(units) - size + 1)]


def _same_until(a: Sequence[str], b: Sequence[str]) -> int:
    same = 0
    for here, there in zip(a, b, strict=False):
        if here != there:
            break
        same += 1
    return same
