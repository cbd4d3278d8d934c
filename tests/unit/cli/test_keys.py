"""`tandem keys`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from services.common.auth.config import Callers
from services.common.auth.keys import KeyRing
from services.common.settings import validate
from services.router.tenants import Tenants


def test_the_entry_that_is_printed_takes_the_key_that_is_printed() -> None:
    result = CliRunner().invoke(app, ["keys", "make", "acme-ci", "--tenant", "acme"])
    assert result.exit_code == 0
    first, second = result.output.strip().splitlines()
    entries = yaml.safe_load(second.removeprefix("entry: "))
    callers = validate(Callers, {"keys": entries}, "tenants.yaml")
    owner = KeyRing(key.owner() for key in callers.keys).find(first.split()[1])
    assert owner is not None
    assert (owner.id, owner.tenant) == ("acme-ci", "acme")


def test_the_file_that_is_written_is_a_router_s_and_is_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    arguments = ["keys", "make", "laptop", "--tenant", "acme", "--file", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    tenants = validate(Tenants, yaml.safe_load(file.read_text()), "tenants.yaml")
    assert {tenant.name for tenant in tenants.tenants} == {"acme"}
    found = KeyRing(key.owner() for key in tenants.keys).find(result.output.split()[1])
    assert found is not None
    before = file.read_bytes()
    again = CliRunner().invoke(app, arguments)
    assert (again.exit_code, file.read_bytes()) == (2, before)


@pytest.mark.parametrize("arguments", [["A B", "--tenant", "a"], ["a", "--tenant", "A"], ["a.b"]])
def test_bad_names(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["keys", "make", *arguments]).exit_code == 2
