"""What may come next in an answer that is held to a form; labels are the simplest form."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from services.edge_worker.label_trie import TrieNode
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


class LabelConstraint:
    """Lets through exactly the encodings of the labels.

    Where one label begins another, the end tokens compete with what follows.

    Args:
        root: Trie of the labels.
        end_ids: Tokens that end an answer.
    """

    def __init__(self, root: TrieNode, end_ids: Collection[int]) -> None:
        self._node = root
        self._end_ids = end_ids

    def allowed(self) -> Ids:
        """See `Constraint.allowed`."""
        return self._node.next_tokens(self._end_ids)

    def take(self, token: int) -> None:
        """See `Constraint.take`."""
        self._node = self._node.children.get(token) or TrieNode()

    @property
    def done(self) -> bool:
        """See `Constraint.done`."""
        return not self._node.children
