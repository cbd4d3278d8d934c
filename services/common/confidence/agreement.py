"""What several sampled answers to one question say together (self-consistency).

Wang et al. 2022 (arXiv 2203.11171) take the most frequent answer; Yue et al. 2023
(arXiv 2310.03094) take its share as the confidence of a cascade.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Shares are of all samples, 0 to 1.

    Attributes:
        answer: The most frequent answer, the earlier one where two are; empty without any.
        samples: How many were drawn.
        votes: How many gave `answer`.
        runner_up: How many gave the second.
        distinct: How many different answers there were.
        unreadable: How many samples had no answer.
        entropy: Of the readable answers, in nats.
        halves: Share of `answer` in the first and in the second half of the samples: these
            differ where two prompts or settings were sampled and disagree.
    """

    answer: str
    samples: int
    votes: int
    runner_up: int
    distinct: int
    unreadable: int
    entropy: float
    halves: tuple[float, float]

    @property
    def share(self) -> float:
        """Share of samples behind the answer."""
        return self.votes / self.samples if self.samples else 0.0

    @property
    def margin(self) -> float:
        """How far the answer is ahead of the second."""
        return (self.votes - self.runner_up) / self.samples if self.samples else 0.0


def agreement(answers: Sequence[str | None]) -> Agreement:
    """Counts equal answers; None is a sample without a readable one."""
    counts = Counter(answer for answer in answers if answer is not None)
    ranked = [*counts.most_common(2), ("", 0), ("", 0)]
    (best, votes), (_, runner_up) = ranked[:2]
    readable, middle = counts.total(), len(answers) // 2
    shares = [count / readable for count in counts.values()]
    return Agreement(
        answer=best,
        samples=len(answers),
        votes=votes,
        runner_up=runner_up,
        distinct=len(counts),
        unreadable=len(answers) - readable,
        entropy=-sum(share * math.log(share) for share in shares) + 0.0,
        halves=(_share(best, answers[:middle]), _share(best, answers[middle:])),
    )


def _share(answer: str, answers: Sequence[str | None]) -> float:
    return sum(one == answer for one in answers) / len(answers) if answers else 0.0
