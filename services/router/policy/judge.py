"""Judges answers of the edge and of the small cloud model by their signals (design, section 4).

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.common.confidence.signals import Signal, combine
from services.common.confidence.thresholds import Band, Bands, Thresholds
from services.common.vocabulary import Reason


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged, and by which thresholds.

    Attributes:
        prompt_id: Of system text, few-shot and decoding settings; a calibrator is bound to it.
    """

    task: str
    intent: str
    model_id: str
    prompt_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What is known of an answer.

    Attributes:
        signals: Each 0 to 1; those that there are.
        worst_logprob: Of its least likely token; None where not known.
        validated: Its form was checked and kept; False where it has no form to check.
        hedged: It says that it does not know.
    """

    signals: Mapping[Signal, float]
    worst_logprob: float | None = None
    validated: bool = False
    hedged: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, with what the ledger keeps of it.

    Attributes:
        band: Where the confidence fell.
        kept: The answer may be served as it is.
        wants_second: Only a further signal can decide.
        hopeless: So far below that the small cloud model is passed over.
        raw: Weighted mean of the signals; None without any.
        confidence: Calibrated; None where the calibrators are for something else.
    """

    band: Band
    kept: bool
    wants_second: bool
    hopeless: bool
    raw: float | None
    confidence: float | None
    bands: Bands
    reason: Reason
    signals: Mapping[Signal, float] = field(default_factory=dict)


def judge(
    thresholds: Thresholds, subject: Subject, answered: Answered, *, second_done: bool = False
) -> Judgement:
    """Says whether an edge answer is good enough.

    Args:
        thresholds: Those in force.
        subject: Whose answer to what.
        answered: What is known of it.
        second_done: No further signal can be had; the middle bands decide now.
    """
    judged = _judged(thresholds, subject, answered, second_done)
    return replace(judged, signals=answered.signals)


def judge_small(thresholds: Thresholds, subject: Subject, answered: Answered) -> Judgement:
    """Says whether the small cloud model's answer is good enough, or the large one is asked.

    What its score means only a map of its own can say; without one it is kept unless it
    hedges. There is no second signal.
    """
    bands = thresholds.bands(subject.task, subject.intent)
    score = combine(answered.signals, thresholds.weights)
    raw, confidence = None if score is None else score.value, None
    if score is not None:
        fitted = thresholds.map_for(
            subject.task, subject.model_id, subject.prompt_id, score.signals
        )
        confidence = fitted.curve.probability(score.value) if fitted else None
    low = confidence is not None and confidence < bands.edges[0]
    if answered.hedged or low:
        return _verdict(Band.ESCALATE, bands, raw, confidence, Reason.LOW_CONFIDENCE)
    return _verdict(Band.ACCEPT, bands, raw, confidence, Reason.DEFAULT, kept=True)


def _judged(
    thresholds: Thresholds, subject: Subject, answered: Answered, second_done: bool
) -> Judgement:
    bands = thresholds.bands(subject.task, subject.intent)
    score = combine(answered.signals, thresholds.weights)
    if score is None:
        return _verdict(Band.ESCALATE, bands, None, None, Reason.LOW_CONFIDENCE)
    fitted = thresholds.calibrator(subject.task, subject.model_id, subject.prompt_id, score.signals)
    if fitted.refused:
        # A score whose meaning is not known: the safe side.
        return _verdict(Band.ESCALATE, bands, score.value, None, Reason.ROUTER_DEGRADED)
    confidence = fitted.curve.probability(score.value)
    sound = fitted.top_is_sound and _no_wild_token(answered, thresholds)
    band = bands.band(confidence, unchecked=sound)
    if score.only_self_report and band in (Band.ACCEPT, Band.ACCEPT_UNCHECKED):
        band = Band.SECOND_SIGNAL
    return _decided(band, bands, score.value, confidence, answered, second_done)


def _decided(
    band: Band,
    bands: Bands,
    raw: float,
    confidence: float,
    answered: Answered,
    second_done: bool,
) -> Judgement:
    if band is Band.ACCEPT_UNCHECKED:
        return _verdict(band, bands, raw, confidence, Reason.DEFAULT, kept=True)
    if answered.hedged:
        return _verdict(Band.ESCALATE, bands, raw, confidence, Reason.LOW_CONFIDENCE)
    if band is Band.ACCEPT:
        return _verdict(band, bands, raw, confidence, Reason.DEFAULT, kept=True)
    if band is Band.ESCALATE:
        return _verdict(band, bands, raw, confidence, Reason.LOW_CONFIDENCE)
    if band is Band.VALIDATE and answered.validated:
        return _verdict(band, bands, raw, confidence, Reason.DEFAULT, kept=True)
    if second_done:
        reason = Reason.SECOND_SIGNAL if band is Band.SECOND_SIGNAL else Reason.LOW_CONFIDENCE
        return _verdict(band, bands, raw, confidence, reason)
    wants = band is Band.SECOND_SIGNAL
    return _verdict(band, bands, raw, confidence, Reason.LOW_CONFIDENCE, wants_second=wants)


def _verdict(
    band: Band,
    bands: Bands,
    raw: float | None,
    confidence: float | None,
    reason: Reason,
    *,
    kept: bool = False,
    wants_second: bool = False,
) -> Judgement:
    return Judgement(
        band=band,
        kept=kept,
        wants_second=wants_second,
        hopeless=band is Band.ESCALATE,
        raw=raw,
        confidence=confidence,
        bands=bands,
        reason=reason,
    )


def hedges(text: str, phrases: Sequence[str]) -> bool:
    """True where the answer says that it does not know."""
    low = text.casefold()
    return any(phrase.casefold() in low for phrase in phrases)


def _no_wild_token(answered: Answered, thresholds: Thresholds) -> bool:
    worst = answered.worst_logprob
    return worst is None or (math.isfinite(worst) and worst >= thresholds.worst_token_logprob)
