"""Walks along one path of a trie of labels and keeps what the model thinks at its forks."""

from __future__ import annotations

from collections.abc import Collection

from services.common.vocabulary import FinishReason
from services.edge_worker.label_trie import Path, TrieNode, chances
from services.edge_worker.sampling import Row, Scorer


class ForkReader:
    """Implements `services.edge_worker.job.Drawer`: its tokens are given, not drawn.

    Attributes:
        forks: Chances at each fork passed, by path; read after it has ended.
    """

    mean_logprob = 0.0
    min_logprob = 0.0
    mean_margin = 0.0

    def __init__(self, root: TrieNode, path: Path, end_ids: Collection[int]) -> None:
        self.newest = -1
        self.count = 0
        self.forks: dict[Path, dict[int | None, float]] = {}
        self._node = root
        self._path = path
        self._end_ids = end_ids

    def take(self, row: Row, scorer: Scorer) -> tuple[None, FinishReason | None]:
        """See `Drawer.take`.

        Raises:
            BadLogits: The row is not finite.
        """
        scorer.score(row)
        if self._node.forks:
            self.forks[self._node.path] = chances(self._node, row, self._end_ids)
        self.count += 1
        if self.count > len(self._path):
            return None, FinishReason.STOP
        self.newest = self._path[self.count - 1]
        self._node = self._node.children[self.newest]
        return None, None
