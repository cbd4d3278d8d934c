"""Reading GGUF: what is there, and clear errors for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.weights.errors import CorruptModel, ModelNotBuilt, UnsupportedModel
from services.edge_worker.kit.weights import LlamaConfig, Weights, read_weights
from tests.unit.edge_worker.kit import tiny


def test_reads_the_configuration(tiny_weights: Weights) -> None:
    expected = LlamaConfig(
        layers=2, hidden=64, heads=2, kv_heads=1, head_dim=32, ff=96, vocab=tiny.VOCAB,
        rope_base=10_000.0, eps=tiny_weights.config.eps, context=128, tied=True,
    )  # fmt: skip
    assert tiny_weights.config == expected
    assert tiny_weights.config.eps == pytest.approx(1e-5)


def test_an_own_head_is_not_tied(tmp_path: Path) -> None:
    weights = read_weights(tiny.write_gguf(tmp_path / "m.gguf", tied=False))
    assert not weights.config.tied
    assert weights["output"].floats().shape == (tiny.VOCAB, tiny.HIDDEN)


def test_another_architecture_is_unsupported(tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf", arch="mamba")
    with pytest.raises(UnsupportedModel, match="mamba"):
        read_weights(path)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf", skip="blk.1.attn_k.weight")
    with pytest.raises(CorruptModel, match=r"blk\.1\.attn_k"):
        read_weights(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelNotBuilt):
        read_weights(tmp_path / "none.gguf")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_corrupt(tiny_gguf: Path, tmp_path: Path, share: float) -> None:
    whole = tiny_gguf.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CorruptModel):
        read_weights(cut)


def test_other_bytes_are_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "noise.gguf"
    path.write_bytes(bytes(range(256)) * 64)
    with pytest.raises(CorruptModel):
        read_weights(path)
