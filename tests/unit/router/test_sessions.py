"""What is remembered of sessions, of edge answers, and the one vector of a request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.common.embedding.runner import Vector
from services.common.vocabulary import AttemptOutcome, Target
from services.router.assess import Assessor
from services.router.embed_text import TextVector, conversation
from services.router.policy.facts import SessionFacts
from services.router.state.edge_quality import EdgeQuality
from services.router.state.sessions import MemorySessions, SessionKey
from tandem.router.v1 import router_pb2
from tests.unit.router.builders import with_complexity

KEY = SessionKey("acme", "one")
E, L = Target.EDGE, Target.CLOUD_LARGE


def test_two_scores_and_the_last_target_are_kept() -> None:
    sessions = MemorySessions()
    for score, target in ((2.0, E), (8.0, L), (None, L), (9.0, E)):
        sessions.note(KEY, score, target, 0.0)
    assert sessions.facts(KEY, 1.0) == SessionFacts((8.0, 9.0), E)


def test_another_tenant_and_an_old_or_unnamed_session_have_nothing() -> None:
    sessions = MemorySessions(max_age_s=10.0)
    sessions.note(KEY, 8.0, L, 0.0)
    sessions.note(SessionKey("acme", ""), 8.0, L, 0.0)
    assert sessions.facts(SessionKey("other", "one"), 1.0) == SessionFacts()
    assert sessions.facts(SessionKey("acme", ""), 1.0) == SessionFacts()
    assert sessions.facts(KEY, 10.5) == SessionFacts()


def test_the_longest_unused_leave_first() -> None:
    sessions = MemorySessions(max_sessions=2)
    keys = [SessionKey("acme", str(number)) for number in range(3)]
    sessions.note(keys[0], 1.0, E, 0.0)
    sessions.note(keys[1], 1.0, E, 1.0)
    sessions.note(keys[0], 1.0, E, 2.0)
    sessions.note(keys[2], 1.0, E, 3.0)
    assert [bool(sessions.facts(key, 3.0).scores) for key in keys] == [True, False, True]


def test_a_pass_rate_needs_ten_judged_answers() -> None:
    quality = EdgeQuality()
    for _ in range(9):
        quality.took("code", AttemptOutcome.REJECTED)
        quality.took("code", AttemptOutcome.TIMED_OUT)
    assert quality.pass_rate("code") is None
    quality.took("code", AttemptOutcome.ACCEPTED)
    assert quality.pass_rate("code") == 0.1
    assert quality.pass_rate("open_question") is None


class Counting:
    """An embedder that counts its calls, or fails."""

    model_id = "counting"

    def __init__(self, *, fails: bool = False) -> None:
        self.calls, self._fails = 0, fails

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        if self._fails:
            raise RuntimeError("broken")
        return [Vector(np.eye(512, dtype=np.float32)[len(text) % 512], 0.0) for text in texts]


def test_a_request_is_embedded_once_and_only_when_asked() -> None:
    embedder = Counting()
    vector = TextVector("hello", embedder)
    assert embedder.calls == 0
    assert vector.get() is vector.get()
    assert embedder.calls == 1
    assert vector.model_id == "counting"


def test_a_failing_or_absent_embedder_gives_none_once() -> None:
    broken = Counting(fails=True)
    vector = TextVector("hello", broken)
    assert vector.get() is None
    assert vector.get() is None
    assert broken.calls == 1
    assert TextVector("hello", None).get() is None


def test_examples_are_embedded_once_for_a_policy() -> None:
    embedder = Counting()
    rule = with_complexity(
        strategy="similarity", simple_examples=("four",), complex_examples=("seven77",)
    ).complexity
    assessor = Assessor(embedder, None)
    for _ in range(3):
        found = assessor.facts(TextVector("same", embedder), rule, None)
    assert (found.simple, found.complex, found.probability) == (1.0, 0.0, None)
    assert embedder.calls == 3 + 2
    assert Assessor(None, None).facts(TextVector("same", None), rule, None).simple is None


def test_the_conversation_is_what_people_said_and_bounded() -> None:
    request = router_pb2.RouteRequest()
    for role, text in ((1, "first "), (2, "an answer"), (1, " second")):
        request.messages.add(role=role, content=text)
    assert conversation(request) == "first\nsecond"
    request.messages.add(role=1, content="x" * 5_000 + "the end")
    assert len(conversation(request)) <= 801
    assert conversation(request).startswith("first") and conversation(request).endswith("the end")
