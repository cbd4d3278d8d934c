"""The cache by real requests: what shares an answer, and above all what does not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.auth.keys import hash_key, make_key
from services.common.embedding.files import DEFAULT_DIR
from services.common.embedding.kit import build_embedder
from tandem.common.v1 import chat_pb2, decision_pb2
from tandem.router.v1 import router_pb2
from tests.e2e.conftest import BURN
from tests.e2e.harness import PATIENT, Tandem, eventually, question

OTHER_KEY = make_key("other")
PROVE = "Prove that there are infinitely many primes"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    build_embedder(DEFAULT_DIR)
    folder = Path(tmp_path_factory.mktemp("cache"))
    tenants = folder / "tenants.yaml"
    key = {"id": "other", "tenant": "other", "hashes": [hash_key(OTHER_KEY)], "roles": ["caller"]}
    names = [{"name": "local"}, {"name": "other"}]
    tenants.write_text(
        yaml.safe_dump(
            {
                "tenants": names,
                "keys": [key],
                "roles": {"caller": ["*"]},
                "anonymous": "local",
            }
        )
    )
    settings = {
        "TANDEM_ROUTER__TENANTS_FILE": str(tenants),
        "TANDEM_ROUTER__CACHE__ENABLED": "true",
        "TANDEM_ROUTER__EMBEDDER_DIR": str(DEFAULT_DIR),
    }
    system = Tandem(folder, BURN, router=settings)
    yield system
    system.close()


def calls(tandem: Tandem) -> int:
    return len(tandem.upstream.seen())


def test_a_hundred_equal_questions_at_once_make_one_call(tandem: Tandem) -> None:
    tandem.upstream.default(ttft_ms=700)
    text = f"{PROVE}, a hundred times"
    with ThreadPoolExecutor(100) as pool:
        results = list(pool.map(lambda _: tandem.stream(question(text)), range(100)))
    assert calls(tandem) == 1
    assert {result.text for result in results} == {"The fake upstream answers in a few words."}
    reasons = sorted(result.served[2] for result in results)
    assert reasons.count("CACHE_EXACT") == 99


def test_a_hit_streams_like_an_answer_and_leaves_a_row(tandem: Tandem) -> None:
    first = tandem.stream(question(PROVE))
    hit = tandem.stream(question(f"  {PROVE.lower()}. "))
    assert first.served[:2] == ("L3", "CLOUD_LARGE")
    assert hit.served == ("NONE", "CACHE", "CACHE_EXACT", "NONE")
    assert [e.WhichOneof("event") for e in hit.events] == ["decision", "chunk", "final"]
    assert hit.events[0].decision.decision.target == hit.outcome.decision.target
    assert hit.events[1].chunk.state == router_pb2.CHUNK_STATE_COMMITTED
    assert hit.text == first.text
    assert hit.outcome.usage.cost_micro_usd == 0
    (row,) = tandem.wait_rows(hit.events[0].decision.request_id)
    assert (row["level"], row["target"], row["reason"]) == ("NONE", "CACHE", "CACHE_EXACT")
    assert row["attempts"] == []


def test_a_like_question_is_served_by_meaning(tandem: Tandem) -> None:
    tandem.stream(question("Explain why leaves of trees turn yellow"))
    like = tandem.stream(question("Explain why the leaves of the trees turn yellow"))
    assert like.served == ("NONE", "CACHE", "CACHE_SEMANTIC", "NONE")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Explain why shops open on holidays", "Explain why shops close on holidays"),
        ("Explain why the capital of Pakistan moved", "Explain why the capital of India moved"),
        ("Explain why 3 people are enough", "Explain why 30 people are enough"),
        ("为什么要开通自动扣款", "为什么要关闭自动扣款"),
        ("证明从北京到上海更快", "证明从上海到北京更快"),
    ],
)
def test_what_only_looks_alike_asks_the_model(tandem: Tandem, one: str, other: str) -> None:
    before = calls(tandem)
    assert tandem.stream(question(one)).served[1] == "CLOUD_LARGE"
    assert tandem.stream(question(other)).served[1] == "CLOUD_LARGE"
    assert calls(tandem) == before + 2


def test_another_tenant_is_never_served(tandem: Tandem) -> None:
    request = question(f"{PROVE}, for one tenant")
    tandem.stream(request)
    options: dict[str, Any] = {**PATIENT}
    options["metadata"] = [*PATIENT["metadata"], ("authorization", f"Bearer {OTHER_KEY}")]
    theirs = tandem.stub.Route(request, **options)
    assert theirs.outcome.decision.target != decision_pb2.TARGET_CACHE
    assert tandem.stream(request).served[1] == "CACHE"


def test_what_is_a_sessions_own_stays_there(tandem: Tandem) -> None:
    def ask(session: str, **fields: Any) -> str:
        request = question(f"{PROVE}, for me", session_id=session, **fields)
        return tandem.stream(request).served[1]

    assert ask("s1", slots={"plan": "gold"}) == "CLOUD_LARGE"
    assert ask("s1", slots={"plan": "gold"}) == "CACHE"
    assert ask("s2", slots={"plan": "gold"}) == "CLOUD_LARGE"
    assert ask("s1", slots={"plan": "silver"}) == "CLOUD_LARGE"
    assert ask("", slots={"plan": "gold"}) == "CLOUD_LARGE"
    assert ask("", slots={"plan": "gold"}) == "CLOUD_LARGE"


def test_history_makes_the_same_words_another_question(tandem: Tandem) -> None:
    def after(text: str) -> str:
        request = question(text, session_id="h1")
        request.messages.add(role=chat_pb2.ROLE_ASSISTANT, content="Yes.")
        request.messages.add(role=chat_pb2.ROLE_USER, content="Prove it")
        return tandem.stream(request).served[1]

    assert [after("Is it odd?"), after("Is it even?")] == ["CLOUD_LARGE"] * 2
    assert after("Is it odd?") == "CACHE"


def test_private_text_never_touches_the_cache(tandem: Tandem) -> None:
    request = question("call me at 138 0013 8000 [[say:Yes.]]")
    for _ in range(2):
        assert tandem.stream(request).served[:3] == ("L0", "EDGE", "PII_PIN")


def test_a_bad_verdict_evicts_what_served(tandem: Tandem) -> None:
    request = question(f"{PROVE}, to be judged")
    tandem.stream(request)
    hit = tandem.stream(request)
    assert hit.served[1] == "CACHE"
    served_id = hit.events[0].decision.request_id
    tandem.wait_rows(served_id)
    verdict = router_pb2.FeedbackRequest(request_id=served_id, verdict=router_pb2.VERDICT_BAD)
    tandem.stub.Feedback(verdict, **PATIENT)
    assert tandem.stream(request).served[1] == "CLOUD_LARGE"


def test_a_degraded_answer_is_not_kept(tandem: Tandem) -> None:
    tandem.upstream.default(status=500)
    request = question(f"{PROVE}, while all is down", tier_preference=0)
    degraded = tandem.stream(request, deadline_ms=20_000)
    assert degraded.outcome.degraded
    tandem.upstream.reset()
    eventually(lambda: tandem.stream(request).served[1] == "CLOUD_LARGE", "asked anew")


def test_a_doubt_about_an_escalated_answer_costs_no_second_call(tandem: Tandem) -> None:
    tandem.upstream.default(text="refund")
    request = question("which of the two is it? [[say:something else]]", session_id="doubts")
    request.output.labels.values.extend(["refund", "complaint"])
    first = tandem.stream(request)
    assert first.served == ("L2", "CLOUD_SMALL", "VALIDATION_FAILED", "QUALITY")
    sent = tandem.upstream.seen()[-1]["body"]["messages"]
    assert sent[-2]["content"] == request.messages[0].content
    assert '"answer": "something else"' in sent[-1]["content"]
    before = calls(tandem)
    request.messages.add(role=chat_pb2.ROLE_ASSISTANT, content=first.text)
    request.messages.add(role=chat_pb2.ROLE_USER, content="Are you sure?")
    doubt = tandem.stream(request)
    assert doubt.served == ("NONE", "CACHE", "ESCALATION_MEMORY", "NONE")
    assert (doubt.text, calls(tandem)) == ("refund", before)
    request.session_id = "another"
    assert tandem.stream(request).served[2] != "ESCALATION_MEMORY"
