"""What the model thinks of each label: exact, whole, and with few reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.edge_worker.fork_reader import ForkReader
from services.edge_worker.label_trie import Path, build_trie, fork_paths, label_chances
from services.edge_worker.sampling import Row, Scorer

VOCAB = 16
ENDS = frozenset({14, 15})
LABELS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple),
    min_size=2,
    max_size=8,
    unique=True,
)


def row_after(path: Path) -> Row:
    """A model: logits follow from all tokens before them."""
    return np.random.default_rng([7, *path]).normal(size=VOCAB).astype(np.float32) * 3


def expected(labels: list[Path], label: Path) -> float:
    """Token by token, as sampling would draw it."""
    chance = 1.0
    for place in range(len(label) + 1):
        before = label[:place]
        ways = {one[place] for one in labels if one[:place] == before and len(one) > place}
        ends = ENDS if before in labels and ways else frozenset()
        row = row_after(before).astype(np.float64)
        total = sum(math.exp(row[token]) for token in ways | ends)
        if place < len(label):
            chance *= math.exp(row[label[place]]) / total
        elif ends:
            chance *= sum(math.exp(row[token]) for token in ends) / total
    return chance


def read(labels: list[Path]) -> list[float]:
    """Runs the readers as the engine does."""
    root, forks, scorer = build_trie(labels), {}, Scorer(VOCAB)
    for path in fork_paths(root):
        reader, reason, place = ForkReader(root, path, ENDS), None, 0
        while reason is None:
            _, reason = reader.take(row_after(path[:place]), scorer)
            place += 1
        assert reader.count == len(path) + 1
        forks.update(reader.forks)
    found = label_chances(root, forks)
    return [found[index] for index in range(len(labels))]


@given(LABELS)
def test_chances_are_those_of_drawing_the_label(labels: list[Path]) -> None:
    chances = read(labels)
    assert sum(chances) == pytest.approx(1.0)
    assert chances == pytest.approx([expected(labels, one) for one in labels], rel=1e-5, abs=1e-12)


@given(LABELS)
def test_no_path_is_read_twice(labels: list[Path]) -> None:
    paths = fork_paths(build_trie(labels))
    assert len(set(paths)) == len(paths)
    assert not any(a != b and b[: len(a)] == a for a in paths for b in paths)


def test_labels_that_part_at_once_need_the_prefill_alone() -> None:
    assert fork_paths(build_trie([(1, 2, 3), (2, 2), (3,)])) == ((),)
    assert fork_paths(build_trie([(1, 2), (1, 3), (2,)])) == ((1,),)
    assert fork_paths(build_trie([(1, 2), (1,)])) == ((1,),)
