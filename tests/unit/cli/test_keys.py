"""`tandem keys`."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from services.common.auth.config import Callers
from services.common.auth.keys import KeyRing
from services.common.settings import validate


def test_the_entry_that_is_printed_takes_the_key_that_is_printed() -> None:
    result = CliRunner().invoke(app, ["keys", "make", "acme-ci", "--tenant", "acme"])
    assert result.exit_code == 0
    first, second = result.output.strip().splitlines()
    entries = yaml.safe_load(second.removeprefix("entry: "))
    callers = validate(Callers, {"keys": entries}, "tenants.yaml")
    owner = KeyRing(key.owner() for key in callers.keys).find(first.split()[1])
    assert owner is not None
    assert (owner.id, owner.tenant) == ("acme-ci", "acme")


@pytest.mark.parametrize("arguments", [["A B", "--tenant", "a"], ["a", "--tenant", "A"], ["a.b"]])
def test_bad_names(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["keys", "make", *arguments]).exit_code == 2
