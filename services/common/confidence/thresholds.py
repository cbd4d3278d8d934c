"""The thresholds file, typed: when an edge answer is judged, by what, and what is enough.

Defaults are the shipped ones; `config/thresholds.yaml` comments them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from services.common.confidence.calibrator import Calibrator, Identity, Isotonic
from services.common.confidence.learned import LearnedScorer
from services.common.confidence.signals import Signal
from services.common.settings import Settings


class Band(StrEnum):
    """What to do with an answer, by its confidence; rising."""

    ESCALATE = "escalate"
    VALIDATE = "validate"
    SECOND_SIGNAL = "second_signal"
    ACCEPT = "accept"
    ACCEPT_UNCHECKED = "accept_unchecked"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrator and how far it may be trusted.

    Attributes:
        curve: The map.
        top_is_sound: Its top band may be accepted unchecked.
        refused: There are maps for this task, but for another model, prompt or set of
            signals: what the score means is not known.
    """

    curve: Calibrator
    top_is_sound: bool
    refused: bool


class Bands(Settings):
    """Confidence from which each band begins; below the first an answer is escalated.

    `low` and `high` are the short form: `validate` from low, `second_signal` from the middle
    between them, `accept` from high.
    """

    low: float | None = Field(default=None, ge=0, le=1)
    high: float | None = Field(default=None, ge=0, le=1)
    validate_from: float | None = Field(default=None, ge=0, le=1)
    second_signal_from: float | None = Field(default=None, ge=0, le=1)
    accept_from: float | None = Field(default=None, ge=0, le=1)
    accept_unchecked_from: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        short = (self.low, self.high)
        full = (self.validate_from, self.second_signal_from, self.accept_from)
        if (None in short) == (None in full):
            raise ValueError(
                "give either low and high, or validate_from, second_signal_from and accept_from"
            )
        edges = [*self.edges, *([self.accept_unchecked_from] if self.accept_unchecked_from else [])]
        if edges != sorted(edges):
            raise ValueError("bands must rise: validate, second_signal, accept, accept_unchecked")
        return self

    @property
    def edges(self) -> tuple[float, float, float]:
        """Where `validate`, `second_signal` and `accept` begin."""
        if self.low is not None and self.high is not None:
            return self.low, (self.low + self.high) / 2, self.high
        return self.validate_from or 0.0, self.second_signal_from or 0.0, self.accept_from or 0.0

    def band(self, confidence: float, *, unchecked: bool) -> Band:
        """The band of a confidence; `unchecked` says whether the top one may be used."""
        top = self.accept_unchecked_from
        if unchecked and top is not None and confidence >= top:
            return Band.ACCEPT_UNCHECKED
        validate, second, accept = self.edges
        if confidence >= accept:
            return Band.ACCEPT
        if confidence >= second:
            return Band.SECOND_SIGNAL
        return Band.VALIDATE if confidence >= validate else Band.ESCALATE


class Calibration(Settings):
    """A fitted map from score to confidence, good for one model, prompt and set of signals."""

    task: str
    model_id: str
    prompt_id: str
    signals: frozenset[Signal]
    scores: tuple[float, ...]
    values: tuple[float, ...]
    top_is_sound: bool = True
    """False where the top scores were over-confident or fell: `accept_unchecked` is lost."""

    @model_validator(mode="after")
    def _rises(self) -> Self:
        _ = self.curve
        return self

    @property
    def curve(self) -> Isotonic:
        """The map itself."""
        return Isotonic(self.scores, self.values)


class Scorer(Settings):
    """A learned scorer, good for one task, model and prompt; see `LearnedScorer`."""

    task: str
    model_id: str
    prompt_id: str
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    offset: float

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _ = self.learned
        return self

    @property
    def learned(self) -> LearnedScorer:
        """The scorer itself."""
        return LearnedScorer(self.means, self.scales, self.weights, self.offset)


class TaskJudging(Settings):
    """How one task's answers are judged: the edge's, and the small cloud model's.

    `judged: false` leaves the output contract as the only check, and text streams at once.
    """

    judged: bool = False
    bands: Bands | None = None
    intents: dict[str, Bands] = Field(default_factory=dict)
    samples: int = Field(default=3, ge=2, le=5)
    """Samples of the second signal, drawn at `sample_temperature`."""
    self_report: bool = False
    """In doubt the model is also asked whether its answer is right."""


class Thresholds(Settings):
    """Everything that judges. Frozen; a reload makes a new one."""

    default: Bands = Bands(low=0.55, high=0.75)
    weights: dict[Signal, float] = Field(
        default_factory=lambda: {
            Signal.LOGPROB: 0.5,
            Signal.AGREEMENT: 0.3,
            Signal.SELF_REPORT: 0.2,
            Signal.SCORER: 1.0,
        }
    )
    tasks: dict[str, TaskJudging] = Field(default_factory=dict)
    sample_temperature: float = Field(default=0.7, gt=0, le=2)
    hedging: tuple[str, ...] = ()
    """Phrases by which a model says that it does not know; matched without case."""
    worst_token_logprob: float = Field(default=-9.0, le=0)
    """An answer with a less likely token is never accepted unchecked."""
    calibrations: tuple[Calibration, ...] = ()
    scorers: tuple[Scorer, ...] = ()

    def task(self, name: str) -> TaskJudging:
        """The task's own settings, or those of a task that is not judged."""
        return self.tasks.get(name, TaskJudging())

    def bands(self, task: str, intent: str) -> Bands:
        """The intent's bands, else the task's, else the default."""
        own = self.task(task)
        return own.intents.get(intent) or own.bands or self.default

    def calibrator(
        self, task: str, model_id: str, prompt_id: str, signals: frozenset[Signal]
    ) -> Fitted:
        """What maps the score of these signals, of this model under this prompt."""
        fitted = self.map_for(task, model_id, prompt_id, signals)
        if fitted is not None:
            return Fitted(fitted.curve, fitted.top_is_sound, refused=False)
        others = any(one.task == task for one in self.calibrations)
        return Fitted(Identity(), top_is_sound=False, refused=others)

    def map_for(
        self, task: str, model_id: str, prompt_id: str, signals: frozenset[Signal]
    ) -> Calibration | None:
        """The map fitted for exactly these."""
        wanted = (task, model_id, prompt_id, signals)
        for one in self.calibrations:
            if (one.task, one.model_id, one.prompt_id, one.signals) == wanted:
                return one
        return None

    def scorer(self, task: str, model_id: str, prompt_id: str) -> LearnedScorer | None:
        """The learned scorer of this model under this prompt."""
        for one in self.scorers:
            if (one.task, one.model_id, one.prompt_id) == (task, model_id, prompt_id):
                return one.learned
        return None
