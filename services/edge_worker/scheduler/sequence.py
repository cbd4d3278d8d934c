"""One answer in the making: its states and the ways between them.

Samples of one request are sequences of their own with one prompt: they start and are
prefilled as a group, led by the first, and go their own ways once they run.

WAITING ──start──▶ PREFILLING ──join──▶ RUNNING ──end──▶ FINISHED
   │                   │                   │
   └───────────────────┴────────end────────┴──▶ ABORTED, EXPIRED, FAILED
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto


class State(Enum):
    """Where a sequence stands."""

    WAITING = auto()
    PREFILLING = auto()
    RUNNING = auto()
    FINISHED = auto()
    ABORTED = auto()
    EXPIRED = auto()
    FAILED = auto()


ENDED = frozenset({State.FINISHED, State.ABORTED, State.EXPIRED, State.FAILED})
_NEXT: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PREFILLING, State.ABORTED, State.EXPIRED, State.FAILED}),
    # FINISHED: the first token may already end the answer.
    State.PREFILLING: ENDED | {State.RUNNING},
    State.RUNNING: ENDED,
}


class IllegalTransition(RuntimeError):
    """A sequence was asked to go where its state does not lead: a bug."""


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """What the scheduler must know of a request.

    Attributes:
        id: Unique while the sequence lives.
        tenant: For fairness inside a lane.
        prompt_tokens: Length of the prompt, at least 1.
        max_output_tokens: Most tokens of the answer, at least 1.
        expires_at: Monotonic seconds after which nobody waits for it.
        also: Ids of further samples, which share the prompt.
    """

    id: int
    tenant: str
    prompt_tokens: int
    max_output_tokens: int
    expires_at: float
    also: tuple[int, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of all samples."""
        return (self.id, *self.also)

    @property
    def reserved_tokens(self) -> int:
        """KV positions it may need: all of them are kept for it from the start."""
        return self.prompt_tokens + self.max_output_tokens

    @property
    def group_tokens(self) -> int:
        """KV positions of all samples: each has a row, and so a copy of the prompt."""
        return len(self.ids) * self.reserved_tokens


class Sequence:
    """A sequence in a lane; changed by its lane alone.

    Attributes:
        computed: Prompt positions already in the cache.
        produced: Tokens of the answer so far; the newest is not in the cache yet.
        row: Row of the pool while RUNNING, else -1.
        abort_asked: The caller left; a row is given back between steps only.
        group: All samples of the request, the first one first.
    """

    __slots__ = (
        "abort_asked",
        "added_at",
        "computed",
        "group",
        "produced",
        "row",
        "spec",
        "started_at",
        "state",
    )

    def __init__(self, spec: SequenceSpec, now: float) -> None:
        self.spec = spec
        self.state = State.WAITING
        self.computed = 0
        self.produced = 0
        self.row = -1
        self.abort_asked = False
        self.added_at = now
        self.started_at = now
        others = (Sequence(replace(spec, id=one, also=()), now) for one in spec.also)
        self.group: tuple[Sequence, ...] = (self, *others)
        for other in self.group[1:]:
            other.group = self.group

    @property
    def prompt_left(self) -> int:
        """Prompt tokens still to be computed."""
        return self.spec.prompt_tokens - self.computed

    @property
    def past(self) -> int:
        """Positions in the cache: the prompt and every answer token but the newest."""
        return self.computed + max(0, self.produced - 1)

    def start(self, now: float) -> None:
        """WAITING → PREFILLING: it has its place in the pool."""
        self._go(State.PREFILLING)
        self.started_at = now

    def compute(self, tokens: int) -> None:
        """A chunk of the prompt is in the cache."""
        if self.state is not State.PREFILLING or tokens > self.prompt_left:
            raise IllegalTransition(f"sequence {self.spec.id}: chunk of {tokens} in {self.state}")
        self.computed += tokens

    def produce(self) -> None:
        """A token of the answer was drawn."""
        if self.prompt_left or self.produced >= self.spec.max_output_tokens:
            raise IllegalTransition(f"sequence {self.spec.id}: token {self.produced + 1}")
        self.produced += 1

    def join(self, row: int) -> None:
        """PREFILLING → RUNNING in `row`."""
        self._go(State.RUNNING)
        self.row = row

    def move(self, row: int) -> None:
        """Another row, because one before it has left."""
        if self.state is not State.RUNNING:
            raise IllegalTransition(f"sequence {self.spec.id}: moved in {self.state}")
        self.row = row

    def end(self, state: State) -> None:
        """Into one of the ended states."""
        self._go(state)
        self.row = -1

    def _go(self, state: State) -> None:
        if state not in _NEXT.get(self.state, frozenset()):
            raise IllegalTransition(f"sequence {self.spec.id}: {self.state.name} → {state.name}")
        self.state = state
