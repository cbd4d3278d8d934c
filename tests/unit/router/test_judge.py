"""Judging edge answers: signals, bands, calibrators bound to what they were fitted on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.common.confidence.likeness import likeness
from services.common.confidence.signals import Signal, combine, logprob_signal
from services.common.confidence.thresholds import Band, Bands, Calibration, TaskJudging, Thresholds
from services.common.vocabulary import Reason
from services.router.execute.judging import prompt_id
from services.router.policy.judge import Answered, Judgement, Subject, hedges, judge
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

SUBJECT = Subject("open_question", "", "model-1", "prompt-1")
LOGPROB = frozenset({Signal.LOGPROB})
CALIBRATION = Calibration(
    task="open_question",
    model_id="model-1",
    prompt_id="prompt-1",
    signals=LOGPROB,
    scores=(0.0, 1.0),
    values=(0.0, 0.9),
)


def judged(
    score: float,
    thresholds: Thresholds = Thresholds(),
    subject: Subject = SUBJECT,
    *,
    validated: bool = False,
    hedged: bool = False,
    second_done: bool = False,
    signal: Signal = Signal.LOGPROB,
) -> Judgement:
    answered = Answered({signal: score}, worst_logprob=-1.0, validated=validated, hedged=hedged)
    return judge(thresholds, subject, answered, second_done=second_done)


@pytest.mark.parametrize(
    ("score", "validated", "second_done", "band", "kept", "wants"),
    [
        (0.50, True, False, Band.ESCALATE, False, False),
        (0.60, True, False, Band.VALIDATE, True, False),
        (0.60, False, False, Band.VALIDATE, False, False),
        (0.70, True, False, Band.SECOND_SIGNAL, False, True),
        (0.70, True, True, Band.SECOND_SIGNAL, False, False),
        (0.80, False, False, Band.ACCEPT, True, False),
    ],
)
def test_each_band_has_its_consequence(
    score: float, validated: bool, second_done: bool, band: Band, kept: bool, wants: bool
) -> None:
    found = judged(score, validated=validated, second_done=second_done)
    assert (found.band, found.kept, found.wants_second) == (band, kept, wants)
    assert found.hopeless == (band is Band.ESCALATE)


def test_an_answer_that_hedges_is_not_served() -> None:
    assert not judged(0.99, hedged=True).kept
    assert hedges("Well, I DON'T know.", ("i don't know",))
    assert not hedges("The answer is 4.", ("i don't know",))


def test_without_a_signal_nothing_is_accepted() -> None:
    found = judge(Thresholds(), SUBJECT, Answered({}))
    assert (found.kept, found.raw, found.reason) == (False, None, Reason.LOW_CONFIDENCE)


def test_what_a_model_says_of_itself_never_accepts_alone() -> None:
    found = judged(1.0, signal=Signal.SELF_REPORT)
    assert (found.band, found.kept, found.wants_second) == (Band.SECOND_SIGNAL, False, True)
    assert not judged(1.0, signal=Signal.SELF_REPORT, second_done=True).kept


def test_intent_before_task_before_default() -> None:
    strict, loose = Bands(low=0.85, high=0.92), Bands(low=0.35, high=0.60)
    thresholds = Thresholds(
        tasks={"open_question": TaskJudging(bands=loose, intents={"billing": strict})}
    )
    billing = Subject("open_question", "billing", "m", "p")
    assert not judged(0.80, thresholds, billing).kept
    assert judged(0.65, thresholds).kept
    assert not judged(0.65, thresholds, Subject("code", "", "m", "p")).kept


def test_a_calibrator_maps_the_score() -> None:
    found = judged(0.9, Thresholds(calibrations=(CALIBRATION,)))
    assert found.raw == 0.9
    assert found.confidence is not None
    assert math.isclose(found.confidence, 0.81)


@pytest.mark.parametrize(
    "other",
    [
        Subject("open_question", "", "model-2", "prompt-1"),
        Subject("open_question", "", "model-1", "prompt-2"),
    ],
)
def test_a_calibrator_of_another_model_or_prompt_is_refused(other: Subject) -> None:
    found = judged(0.99, Thresholds(calibrations=(CALIBRATION,)), other)
    assert (found.kept, found.confidence) == (False, None)
    assert found.reason is Reason.ROUTER_DEGRADED


def test_accept_unchecked_needs_a_sound_top_and_no_wild_token() -> None:
    bands = Bands(low=0.5, high=0.7, accept_unchecked_from=0.85)
    sound = Thresholds(default=bands, calibrations=(CALIBRATION,))
    assert judged(1.0, sound, hedged=True).band is Band.ACCEPT_UNCHECKED
    # An unchecked answer is served as it is; without a sound top the hedge counts.
    unsound = CALIBRATION.model_copy(update={"top_is_sound": False})
    assert not judged(1.0, sound.model_copy(update={"calibrations": (unsound,)}), hedged=True).kept
    wild = Answered({Signal.LOGPROB: 1.0}, worst_logprob=-20.0)
    assert judge(sound, SUBJECT, wild).band is Band.ACCEPT


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_less_accepted(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert judged(high, second_done=True).kept >= judged(low, second_done=True).kept


@given(st.dictionaries(st.sampled_from(Signal), st.floats(0, 1)))
def test_absent_signals_leave_their_weight_to_the_others(signals: dict[Signal, float]) -> None:
    score = combine(signals, Thresholds().weights)
    weighed = [value for name, value in signals.items() if name in Thresholds().weights]
    if score is None:
        assert not weighed
    else:
        assert min(weighed) - 1e-9 <= score.value <= max(weighed) + 1e-9


@pytest.mark.parametrize(
    "bands",
    [
        {"low": 0.8, "high": 0.5},
        {"low": 0.5},
        {},
        {
            "low": 0.1,
            "high": 0.2,
            "validate_from": 0.1,
            "second_signal_from": 0.2,
            "accept_from": 1,
        },
        {"low": 0.1, "high": 0.6, "accept_unchecked_from": 0.5},
    ],
)
def test_bands_that_do_not_rise_are_refused(bands: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Bands.model_validate(bands)


def test_likeness_is_of_content() -> None:
    assert likeness('{"a": 1, "b": 2}', '{"b":2,"a":1}') == 1.0
    assert likeness("Tokyo.", " tokyo") == 1.0
    assert likeness("It is Tokyo", "It is Kyoto") == pytest.approx(2 / 3)
    assert likeness("东京", "京都") == 0.5
    assert likeness("yes", "no") == 0.0


def test_a_number_of_another_sign_or_size_is_another_answer() -> None:
    assert likeness("-5", "5") == 0.0
    assert likeness("3.5", "3 5") < 1.0
    assert likeness("1,200", "1,200.") == 1.0


def test_the_mean_log_probability_becomes_a_share() -> None:
    assert logprob_signal(0.0) == 1.0
    assert math.isclose(logprob_signal(-1.0), math.exp(-1))


def test_the_prompt_id_is_of_what_stands_around_the_question() -> None:
    def asked(text: str, system: str) -> str:
        turn = chat_pb2.Message(role=chat_pb2.ROLE_USER, content=text)
        return prompt_id(router_pb2.RouteRequest(messages=[turn], system=system))

    assert asked("one", "Be short.") == asked("two", "Be short.")
    assert asked("one", "Be short.") != asked("one", "Be long.")
