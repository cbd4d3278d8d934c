"""Opening sessions: providers are given as asked or refused, damage is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnxruntime as ort
import pytest

from services.common.weights.errors import CorruptModel, ModelNotBuilt, ProviderUnavailable
from services.edge_worker.kit.manifest import MANIFEST_FILE
from services.edge_worker.kit.store import DATA_FILE, MODEL_FILE
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.runtime.session import cpu_quota, overflows


@pytest.fixture
def broken(fp32_model: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(fp32_model, tmp_path / "broken"))


def test_an_unknown_provider_is_refused(fp32_model: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="NoSuch"):
        OnnxRuntime.load(fp32_model, OnnxOptions(providers=("NoSuchExecutionProvider",)))


def test_no_provider_is_refused(fp32_model: Path) -> None:
    with pytest.raises(ProviderUnavailable):
        OnnxRuntime.load(fp32_model, OnnxOptions(providers=()))


def test_a_silently_dropped_provider_is_refused(
    fp32_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What ONNX Runtime does on a host without a GPU: listed, asked for, dropped.
    wanted = "CUDAExecutionProvider"
    opened = ort.InferenceSession(str(fp32_model / MODEL_FILE), providers=["CPUExecutionProvider"])
    monkeypatch.setattr(ort, "get_available_providers", lambda: [wanted, "CPUExecutionProvider"])
    monkeypatch.setattr(ort, "InferenceSession", lambda *_args, **_kwargs: opened)
    with pytest.raises(ProviderUnavailable, match="CUDA"):
        OnnxRuntime.load(fp32_model, OnnxOptions(providers=(wanted, "CPUExecutionProvider")))


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotBuilt, match="tandem models build"):
        OnnxRuntime.load(tmp_path, OnnxOptions())


@pytest.mark.parametrize("name", [MODEL_FILE, DATA_FILE])
def test_a_truncated_file_is_corrupt(broken: Path, name: str) -> None:
    path = broken / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CorruptModel, match=name):
        OnnxRuntime.load(broken, OnnxOptions())


def test_a_missing_file_is_corrupt(broken: Path) -> None:
    (broken / DATA_FILE).unlink()
    with pytest.raises(CorruptModel, match="missing"):
        OnnxRuntime.load(broken, OnnxOptions())


def test_a_garbled_graph_is_corrupt(broken: Path) -> None:
    path = broken / MODEL_FILE
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(CorruptModel, match="cannot load"):
        OnnxRuntime.load(broken, OnnxOptions())


def test_changed_contents_show_in_the_hash(broken: Path) -> None:
    path = broken / DATA_FILE
    contents = bytearray(path.read_bytes())
    contents[0] ^= 1
    path.write_bytes(contents)
    OnnxRuntime.load(broken, OnnxOptions()).close()
    with pytest.raises(CorruptModel, match="differs"):
        OnnxRuntime.load(broken, OnnxOptions(), check_hashes=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', '{"format": 1}', "\x00"])
def test_an_unreadable_manifest_is_corrupt(broken: Path, text: str) -> None:
    (broken / MANIFEST_FILE).write_text(text)
    with pytest.raises(CorruptModel):
        OnnxRuntime.load(broken, OnnxOptions())


def test_a_manifest_of_another_shape_is_corrupt(broken: Path) -> None:
    path = broken / MANIFEST_FILE
    fields = json.loads(path.read_text())
    fields["kv"]["layers"] += 1
    path.write_text(json.dumps(fields))
    with pytest.raises(CorruptModel, match="inputs"):
        OnnxRuntime.load(broken, OnnxOptions())


@pytest.mark.parametrize(
    ("text", "limit"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None), ("", None)]
)
def test_threads_follow_the_cpu_quota(tmp_path: Path, text: str, limit: int | None) -> None:
    path = tmp_path / "cpu.max"
    path.write_text(text)
    assert cpu_quota(path) == (limit or cpu_quota(tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse2 avx2\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_vnni amx_int8\n", False),
        ("processor\t: 0\nflags\t\t: fpu avx2 avx_vnni\n", False),
        ("processor\t: 0\nFeatures\t: fp asimd\n", False),
    ],
)
def test_weights_are_widened_only_where_sums_overflow(
    tmp_path: Path, text: str, expected: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert overflows(tmp_path / "cpuinfo") is expected
    assert not overflows(tmp_path / "absent")
