"""Labels as a trie over their tokens, and what the model thinks of each.

The probability of a label is that of drawing it, token by token, from what the trie lets
through: at each fork the model's logits are normalized over the tokens that go on, and
where only one does its probability is 1. So the figures sum to 1 without more ado, they
are those of `Generate` with these labels at temperature 1, and logits are needed at
forks alone: most labels part with their first token, which the prefill gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from services.edge_worker.sampling import Ids, Row

Path = tuple[int, ...]


@dataclass(slots=True, eq=False)
class TrieNode:
    """A beginning of labels.

    Attributes:
        path: Its tokens.
        label: Index of the label that is whole here.
    """

    path: Path = ()
    children: dict[int, TrieNode] = field(default_factory=dict)
    label: int | None = None

    @property
    def forks(self) -> bool:
        """More than one thing may follow, an end among them."""
        return len(self.children) + (self.label is not None) > 1

    def next_tokens(self, end_ids: Collection[int]) -> Ids:
        """Tokens that may follow, in order; none where the label can only end."""
        tokens = sorted(self.children)
        if self.label is not None and tokens:
            tokens += sorted(end_ids)
        return np.array(tokens, dtype=np.int64)


def build_trie(encodings: Iterable[Sequence[int]]) -> TrieNode:
    """The root; `encodings` are tokens of each label, none empty, none twice."""
    root = TrieNode()
    for index, tokens in enumerate(encodings):
        node = root
        for token in tokens:
            node = node.children.setdefault(token, TrieNode((*node.path, token)))
        node.label = index
    return root


def fork_paths(root: TrieNode) -> tuple[Path, ...]:
    """Paths that pass through every fork, as few as possible; the root's own at least."""
    forks = [node.path for node in _nodes(root) if node.forks]
    ends = [one for one in forks if not any(_begins(one, other) for other in forks)]
    return tuple(ends) or ((),)


def chances(node: TrieNode, row: Row, end_ids: Collection[int]) -> dict[int | None, float]:
    """Probability of each way on at a fork, by token; None is the end."""
    tokens = node.next_tokens(end_ids)
    logits = row[tokens].astype(np.float64)
    weights = np.exp(logits - logits.max())
    shares: dict[int | None, float] = {}
    for token, share in zip(tokens.tolist(), (weights / weights.sum()).tolist(), strict=True):
        way = token if token in node.children else None
        shares[way] = shares.get(way, 0.0) + share
    return shares


def label_chances(root: TrieNode, forks: dict[Path, dict[int | None, float]]) -> dict[int, float]:
    """Probability of each label, by index, from the chances at all forks."""
    found: dict[int, float] = {}
    stack = [(root, 1.0)]
    while stack:
        node, chance = stack.pop()
        ways = forks.get(node.path, {})
        if node.label is not None:
            found[node.label] = chance * ways.get(None, 1.0)
        stack.extend((child, chance * ways.get(t, 1.0)) for t, child in node.children.items())
    return found


def _nodes(root: TrieNode) -> Iterator[TrieNode]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children.values())


def _begins(path: Path, other: Path) -> bool:
    return len(path) < len(other) and other[: len(path)] == path
