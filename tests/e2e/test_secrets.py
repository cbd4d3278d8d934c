"""Nothing asked, answered or secret stands in a log, a span, a metric or the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, eventually, question
from tests.fakes.otlp_receiver import OtlpReceiver

PROVIDER_KEY = "sk-provider-0123456789abcdef0123456789abcdef"
PHONE, MAIL = "13800138000", "jo.doe@example.com"
ASKED, ANSWERED = "aardvark", "bandicoot"
HARD = f"Calculate the interest rate of the {ASKED}"


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def tandem(receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    endpoint = receiver.address
    system = Tandem(
        Path(tmp_path_factory.mktemp("secrets")),
        {
            **BURN,
            "TANDEM_EDGE__TELEMETRY__OTLP_ENDPOINT": endpoint,
            "TANDEM_EDGE__TELEMETRY__METRICS_LISTEN": "127.0.0.1:0",
        },
        cloud={
            "TANDEM_CLOUD__TELEMETRY__OTLP_ENDPOINT": endpoint,
            "TANDEM_STANDIN_KEY": PROVIDER_KEY,
            "TANDEM_CLOUD__TELEMETRY__LOG_LEVEL": "debug",
            "TANDEM_CLOUD__TELEMETRY__METRICS_LISTEN": "127.0.0.1:0",
        },
        router={
            "TANDEM_ROUTER__TELEMETRY__OTLP_ENDPOINT": endpoint,
            "TANDEM_ROUTER__TELEMETRY__LOG_LEVEL": "debug",
            "TANDEM_ROUTER__TELEMETRY__METRICS_LISTEN": "127.0.0.1:0",
        },
    )
    yield system
    system.close()


def metrics_of(tandem: Tandem, name: str) -> str:
    """What Prometheus would fetch."""
    told = json.loads(tandem.system.children[name].ready_file.read_text(encoding="utf-8"))
    answer = httpx.get(f"http://{told['metrics_address']}/metrics", timeout=10)
    assert "tandem_" in answer.text
    return answer.text


def test_no_secret_and_no_text_is_left_anywhere(tandem: Tandem, receiver: OtlpReceiver) -> None:
    tandem.upstream.default(text=f"The {ANSWERED} knows.")
    asked = [
        tandem.stream(question(f"hello {ASKED} [[say:{ANSWERED}.]]")),
        tandem.stream(question(f"my phone is {PHONE}, mail {MAIL} [[say:{ANSWERED}.]]")),
        tandem.stream(question(HARD)),
    ]
    tandem.upstream.default(status=500)
    asked.append(tandem.stream(question(HARD)))
    tandem.upstream.default(status=401)
    asked.append(tandem.stream(question(HARD)))
    tandem.stream(question(f"{ASKED} {MAIL}", max_output_tokens=-1))
    assert any(ANSWERED in result.text for result in asked)
    assert any(PROVIDER_KEY in str(seen["headers"]) for seen in tandem.upstream.seen())
    for result in asked:
        tandem.wait_rows(result.events[0].decision.request_id)
    eventually(lambda: len({s.service for s in receiver.spans()}) == 3, "spans of all three", 20)

    places = {
        "spans": json.dumps([(s.name, s.attributes) for s in receiver.spans()], default=str),
        "ledger": json.dumps(tandem.ledger(), default=str),
    }
    for name in ("router", "edge", "cloud"):
        log = tandem.system.children[name].log_file
        places[f"log of {name}"] = log.read_text(encoding="utf-8")
        places[f"metrics of {name}"] = metrics_of(tandem, name)
    secrets = [PROVIDER_KEY, tandem.system.secret, PHONE, MAIL, ASKED, ANSWERED, "leaked-key"]
    found = [(place, each) for place, text in places.items() for each in secrets if each in text]
    assert found == []
