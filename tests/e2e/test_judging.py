"""Answers of the edge are judged before they are served; each verdict has its way on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.router.execute.judging import prompt_id
from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, question

# Each letter of the fake model has a probability of about 0.72; the intents differ in what
# they ask for.
SURE = {**BURN, "TANDEM_FAKE_EDGE__PEAK": "6.5"}
THRESHOLDS = """
default: {low: 0.3, high: 0.5}
hedging: [no idea]
tasks:
  open_question:
    judged: true
    intents:
      poor: {low: 0.9, high: 0.95}
      checked: {validate_from: 0.5, second_signal_from: 0.9, accept_from: 0.95}
      doubtful: {validate_from: 0.4, second_signal_from: 0.5, accept_from: 0.76}
      hard_to_please: {validate_from: 0.4, second_signal_from: 0.5, accept_from: 0.99}
  keyword_extraction:
    judged: true
  text_correction:
    judged: true
    bands: {low: 0.8, high: 0.99}
  slot_extraction:
    judged: true
    self_report: true
    bands: {validate_from: 0.4, second_signal_from: 0.5, accept_from: 0.99}
calibrations:
- task: keyword_extraction
  model_id: another
  prompt_id: "0"
  signals: [logprob]
  scores: [0]
  values: [1]
- task: text_correction
  model_id: small
  prompt_id: PROMPT
  signals: [logprob]
  scores: [0, 1]
  values: [0, 1]
- task: text_correction
  model_id: fake-burn-1
  prompt_id: PROMPT
  signals: [logprob]
  scores: [0, 1]
  values: [0.8, 0.9]
""".replace("PROMPT", prompt_id(router_pb2.RouteRequest()))
SAY = "[[say:The sky is blue. It is.]]"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("judging"))
    file = folder / "thresholds.yaml"
    file.write_text(THRESHOLDS, encoding="utf-8")
    system = Tandem(
        folder,
        SURE,
        router={"TANDEM_ROUTER__THRESHOLDS_FILE": str(file)},
        cloud={"TANDEM_CLOUD__TIERS__SMALL__LOGPROBS": "true"},
    )
    yield system
    system.close()


def served(tandem: Tandem, intent: str, text: str = f"sky? {SAY}", **fields: object) -> object:
    return tandem.stream(question(text, task_type="open_question", intent=intent, **fields)).served


def test_a_sure_answer_is_served_with_its_confidence(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sky? {SAY}", task_type="open_question"))
    assert result.served == ("L0", "EDGE", "TRIVIAL_RULE", "NONE")
    assert 0.6 < result.outcome.decision.confidence < 0.85
    assert result.text == "The sky is blue. It is."
    # It was judged whole: nothing could be shown before.
    assert len([event for event in result.events if event.HasField("chunk")]) == 1


def test_below_the_lowest_band_the_small_cloud_model_is_passed_over(tandem: Tandem) -> None:
    assert served(tandem, "poor") == ("L3", "CLOUD_LARGE", "LOW_CONFIDENCE", "QUALITY")
    assert [seen["model"] for seen in tandem.upstream.seen()] == ["large"]


def test_an_answer_without_a_form_cannot_be_validated(tandem: Tandem) -> None:
    assert served(tandem, "checked") == ("L2", "CLOUD_SMALL", "LOW_CONFIDENCE", "QUALITY")


def test_an_answer_that_kept_its_form_is_served_from_the_same_band(tandem: Tandem) -> None:
    request = question(f"sky? {SAY}", task_type="open_question", intent="checked")
    request.output.regex = "The .*"
    assert tandem.stream(request).served[:2] == ("L0", "EDGE")


def test_samples_that_agree_are_the_second_signal(tandem: Tandem) -> None:
    assert served(tandem, "doubtful") == ("L0", "EDGE", "TRIVIAL_RULE", "NONE")


def test_a_second_signal_that_is_not_enough_escalates(tandem: Tandem) -> None:
    found = served(tandem, "hard_to_please")
    assert found == ("L2", "CLOUD_SMALL", "SECOND_SIGNAL", "QUALITY")


def test_an_answer_that_hedges_escalates(tandem: Tandem) -> None:
    found = served(tandem, "", "sky? [[say:I have no idea at all.]]")
    assert found == ("L3", "CLOUD_LARGE", "LOW_CONFIDENCE", "QUALITY")


def test_a_calibration_of_another_model_serves_the_safe_side(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sort it {SAY}", task_type="keyword_extraction"))
    assert result.served[1:] == ("CLOUD_LARGE", "ROUTER_DEGRADED", "QUALITY")


def test_a_pinned_request_in_doubt_is_asked_back_and_stays(tandem: Tandem) -> None:
    text = f"I am jo@example.com. sky? {SAY}"
    result = tandem.stream(question(text, task_type="open_question", intent="poor"))
    assert result.served == ("L4", "FALLBACK", "PII_PIN", "QUALITY")
    assert "say more exactly" in result.text
    assert list(result.outcome.options)
    assert tandem.upstream.seen() == []


def test_the_ledger_keeps_confidence_and_bands(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sky? {SAY}", task_type="open_question", intent="poor"))
    request_id = result.events[0].decision.request_id
    (row,) = tandem.wait_rows(request_id)
    assert 0.6 < row["confidence"] < 0.85
    assert '"band": "escalate"' in row["bands"]


def test_a_small_cloud_answer_that_hedges_goes_on_to_the_large_model(tandem: Tandem) -> None:
    tandem.upstream.script({"text": "I have no idea at all."}, model="small")
    assert served(tandem, "checked") == ("L3", "CLOUD_LARGE", "LOW_CONFIDENCE", "QUALITY")
    assert [seen["model"] for seen in tandem.upstream.seen()] == ["small", "large"]


@pytest.mark.parametrize(("logprob", "target"), [(-0.1, "CLOUD_SMALL"), (-0.5, "CLOUD_LARGE")])
def test_a_small_cloud_answer_is_judged_by_the_map_of_its_model(
    tandem: Tandem, logprob: float, target: str
) -> None:
    tandem.upstream.script({"logprob": logprob}, model="small")
    result = tandem.stream(question(f"mend this {SAY}", task_type="text_correction"))
    assert result.served == (
        "L2" if target == "CLOUD_SMALL" else "L3", target, "LOW_CONFIDENCE", "QUALITY"
    )  # fmt: skip
    (row,) = tandem.wait_rows(result.events[0].decision.request_id)
    scores = [one.get("confidence_raw") for one in row["attempts"]]
    assert scores[1] == pytest.approx(math.exp(logprob))


def test_in_doubt_the_model_is_asked_about_its_own_answer(tandem: Tandem) -> None:
    result = tandem.stream(question(f"sky? {SAY}", task_type="slot_extraction"))
    assert result.served == ("L2", "CLOUD_SMALL", "SECOND_SIGNAL", "QUALITY")
    (row,) = tandem.wait_rows(result.events[0].decision.request_id)
    signals = json.loads(row["bands"])["signals"]
    assert set(signals) == {"logprob", "agreement", "self_report"}
    assert 0.0 < signals["self_report"] < 1.0
