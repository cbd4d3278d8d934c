"""Builds are idempotent, atomic and survive interruption."""

from __future__ import annotations

import dataclasses
import errno
import subprocess
from pathlib import Path

import pytest

from services.common.weights import source
from services.common.weights.errors import (
    BuildLocked,
    ChecksumMismatch,
    CorruptModel,
    DiskFull,
    ModelError,
    SourceUnavailable,
)
from services.common.weights.source import SMOLLM2, WheelSource
from services.edge_worker.kit import build, staging
from services.edge_worker.kit.manifest import check_files, read_manifest
from services.edge_worker.kit.store import DATA_FILE
from tests.unit.edge_worker.kit import tiny


@pytest.fixture(scope="session")
def wheel_and_source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WheelSource]:
    return tiny.write_wheel(tmp_path_factory.mktemp("wheel"))


def run(out: Path, pair: tuple[Path, WheelSource], *, force: bool = False) -> build.BuildResult:
    return build.build_model(out, wheel=pair[0], source=pair[1], force=force)


def test_builds_once(tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]) -> None:
    out = tmp_path / "deep" / "tiny" / "q8"
    first, second = run(out, wheel_and_source), run(out, wheel_and_source)
    assert (first.built, second.built) == (True, False)
    assert first.manifest == second.manifest == read_manifest(out)
    check_files(first.manifest, out, hashes=True)


def test_a_rebuild_keeps_id_and_bytes(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    first = run(tmp_path / "q8", wheel_and_source)
    again = run(tmp_path / "q8", wheel_and_source, force=True)
    assert again.built
    assert again.manifest == first.manifest


def test_recipe_and_weights_change_the_id() -> None:
    ids = {build.model_id("m", sha, recipe) for sha in "ab" for recipe in ("q8", "fp32")}
    assert len(ids) == 4


def test_a_damaged_model_is_built_anew(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    out = tmp_path / "q8"
    run(out, wheel_and_source)
    (out / DATA_FILE).write_bytes(b"short")
    assert run(out, wheel_and_source).built
    check_files(read_manifest(out), out, hashes=True)


def test_leftovers_are_cleared(tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]) -> None:
    leftover = tmp_path / ".q8.new-abandoned"
    leftover.mkdir()
    (leftover / "part").write_bytes(b"x")
    run(tmp_path / "q8", wheel_and_source)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".q8.lock", "q8"]


def test_a_crash_between_the_renames_loses_nothing(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    out = tmp_path / "q8"
    run(out, wheel_and_source)
    out.rename(tmp_path / ".q8.old")
    assert not run(out, wheel_and_source).built


def test_an_interrupted_build_leaves_the_old_model(
    tmp_path: Path,
    wheel_and_source: tuple[Path, WheelSource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "q8"
    run(out, wheel_and_source)

    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "write_graph", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(out, wheel_and_source, force=True)
    check_files(read_manifest(out), out, hashes=True)
    assert not list(tmp_path.glob(".q8.new-*"))


def test_a_full_disk_is_named(
    tmp_path: Path,
    wheel_and_source: tuple[Path, WheelSource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build, "write_graph", full)
    with pytest.raises(DiskFull):
        run(tmp_path / "q8", wheel_and_source)


def test_two_builds_exclude_each_other(tmp_path: Path) -> None:
    out = tmp_path / "q8"
    with (
        staging.build_lock(out, 1),
        pytest.raises(BuildLocked),
        staging.build_lock(out, 0),
    ):
        pass
    with staging.build_lock(out, 0):
        pass


def test_a_folder_of_models_is_not_replaced_by_one_model(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    run(tmp_path / "tiny" / "q8", wheel_and_source)
    with pytest.raises(ModelError, match="holds other folders"):
        run(tmp_path, wheel_and_source)
    check_files(read_manifest(tmp_path / "tiny" / "q8"), tmp_path / "tiny" / "q8", hashes=True)


def test_an_unknown_recipe(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="q8"):
        build.build_model(tmp_path / "x", recipe="q2")


def test_another_wheel_is_refused(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    with pytest.raises(ChecksumMismatch, match="expected bcc81830"):
        source.obtain_gguf(SMOLLM2, tmp_path, wheel_and_source[0])


def test_another_gguf_in_the_wheel_is_refused(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    wheel, pinned = wheel_and_source
    with pytest.raises(ChecksumMismatch, match=r"tiny\.gguf"):
        source.obtain_gguf(dataclasses.replace(pinned, gguf_sha256="0" * 64), tmp_path, wheel)


def test_a_wheel_without_the_file(
    tmp_path: Path, wheel_and_source: tuple[Path, WheelSource]
) -> None:
    wheel, pinned = wheel_and_source
    with pytest.raises(CorruptModel, match="does not hold"):
        source.obtain_gguf(dataclasses.replace(pinned, member="x/y.gguf"), tmp_path, wheel)


def test_no_wheel(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="no wheel"):
        source.obtain_gguf(SMOLLM2, tmp_path, tmp_path / "none.whl")


def test_no_network_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A closed port stands for a registry that cannot be reached.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(SourceUnavailable, match="--wheel"):
        source.download_wheel(SMOLLM2, tmp_path)


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("ERROR: [Errno 28] No space left on device", DiskFull),
        ("/usr/bin/python: No module named pip", SourceUnavailable),
        ("", SourceUnavailable),
    ],
)
def test_pip_failures_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, kind: type[Exception]
) -> None:
    def failed(*_args: object, **_kwargs: object) -> object:
        return subprocess.CompletedProcess([], 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", failed)
    with pytest.raises(kind):
        source.download_wheel(SMOLLM2, tmp_path)


def test_the_root_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.ROOT_VARIABLE, "/srv/models")
    assert build.model_dir(build.default_root()) == Path("/srv/models/smollm2-135m-instruct/q8")
    monkeypatch.delenv(build.ROOT_VARIABLE)
    assert build.default_root() == Path("models")
