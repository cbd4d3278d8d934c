"""Answers that must be one of a set of labels: a trie over their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from services.edge_worker.sampling import Ids


class Constraint(Protocol):
    """Which tokens may come next; one object for each answer."""

    def allowed(self) -> Ids:
        """Tokens that may come now, at least one, or none when `done`."""
        ...

    def take(self, token: int) -> None:
        """A token of `allowed` was drawn."""
        ...

    @property
    def done(self) -> bool:
        """Nothing can follow: the answer is whole."""
        ...


@dataclass(slots=True)
class _Node:
    children: dict[int, _Node] = field(default_factory=dict)
    ends: bool = False


class LabelConstraint:
    """Lets through exactly the encodings of the labels.

    Where one label begins another, the end token competes with what follows.

    Args:
        encodings: Tokens of each label, none empty.
        end_token: Token that ends an answer.
    """

    def __init__(self, encodings: Iterable[Sequence[int]], end_token: int) -> None:
        self._end = end_token
        self._node = _Node()
        for tokens in encodings:
            node = self._node
            for token in tokens:
                node = node.children.setdefault(token, _Node())
            node.ends = True

    def allowed(self) -> Ids:
        """See `Constraint.allowed`."""
        tokens = sorted(self._node.children)
        if self._node.ends and tokens:
            tokens.append(self._end)
        return np.array(tokens, dtype=np.int64)

    def take(self, token: int) -> None:
        """See `Constraint.take`."""
        self._node = self._node.children.get(token) or _Node()

    @property
    def done(self) -> bool:
        """See `Constraint.done`."""
        return not self._node.children
