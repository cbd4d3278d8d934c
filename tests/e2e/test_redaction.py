"""A tenant with `pii: redact`: the cloud answers, and never sees the value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import BURN
from tests.e2e.harness import Tandem, question

PHONE = "13812345678"


@pytest.fixture(scope="module")
def tandem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tandem]:
    folder = Path(tmp_path_factory.mktemp("redaction"))
    tenants = folder / "tenants.yaml"
    tenants.write_text(
        yaml.safe_dump(
            {"tenants": [{"name": "local", "pii": "redact"}], "anonymous": "local"},
        )
    )
    system = Tandem(folder, BURN, router={"TANDEM_ROUTER__TENANTS_FILE": str(tenants)})
    yield system
    system.close()


def test_the_cloud_answers_without_seeing_the_number(tandem: Tandem) -> None:
    tandem.upstream.default(echo=True, chunk_chars=3)
    asked = f"计算三笔分期的实际年化利率，结果发到手机{PHONE}"
    result = tandem.stream(question(asked))
    assert result.served == ("L3", "CLOUD_LARGE", "HARD_RULE", "NONE")
    assert PHONE in result.text
    assert "PHONE_1" not in result.text
    seen = json.dumps(tandem.upstream.seen(), ensure_ascii=False)
    assert PHONE not in seen
    assert "[PHONE_1]" in seen
