"""Reads Llama-architecture GGUF files into a frozen configuration and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from services.common.weights.errors import CorruptModel, ModelNotBuilt, UnsupportedModel

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Shape of a Llama-like decoder, in the field's own terms."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ff: int
    vocab: int
    rope_base: float
    eps: float
    context: int
    tied: bool


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as stored: `[rows, cols]` or `[cols]`, blocks run along `cols`.

    Attributes:
        name: GGUF name, e.g. `blk.0.attn_q.weight`.
        shape: Logical shape, rows first.
        kind: GGUF type name, e.g. `Q8_0`.
        raw: The stored bytes or floats, a view into the mapped file.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    raw: NDArray[Any]

    def floats(self) -> Floats:
        """Dequantized values, a new float32 array of `shape`."""
        kind = gguf.GGMLQuantizationType[self.kind]
        try:
            values = gguf.quants.dequantize(self.raw, kind)
        except NotImplementedError as error:
            raise UnsupportedModel(f"tensor {self.name} has type {self.kind}") from error
        return np.array(values, dtype=np.float32).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole GGUF file: configuration, metadata and tensors by name."""

    config: LlamaConfig
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of that GGUF name without `.weight`."""
        return self.tensors[f"{name}.weight"]


def read_weights(path: Path) -> Weights:
    """Opens a GGUF file; tensors stay mapped, only metadata is read.

    Raises:
        ModelNotBuilt: No such file.
        CorruptModel: The file is damaged, truncated or contradicts itself.
        UnsupportedModel: Not a Llama architecture, or a variant the builder lacks.
    """
    if not path.is_file():
        raise ModelNotBuilt(f"no GGUF file at {path}")
    try:
        reader = gguf.GGUFReader(path)
        metadata = {key: field.contents() for key, field in reader.fields.items()}
        tensors = {t.name: _tensor(t) for t in reader.tensors}
    except Exception as error:  # the parser meets damaged bytes with any exception
        raise CorruptModel(f"{path} is not a readable GGUF file: {error}") from error
    config = _config(metadata, tensors)
    _check_shapes(config, tensors)
    return Weights(config, metadata, tensors)


def _tensor(raw: gguf.ReaderTensor) -> Tensor:
    # GGUF writes the fastest-moving dimension first.
    shape = tuple(int(n) for n in reversed(raw.shape))
    return Tensor(raw.name, shape, raw.tensor_type.name, raw.data)


def _config(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LlamaConfig:
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise UnsupportedModel(f"architecture {architecture!r}: only 'llama' can be built")
    if any(key.startswith("llama.rope.scaling") for key in metadata):
        raise UnsupportedModel("scaled RoPE is not supported")
    try:
        hidden = int(metadata["llama.embedding_length"])
        heads = int(metadata["llama.attention.head_count"])
        config = LlamaConfig(
            layers=int(metadata["llama.block_count"]),
            hidden=hidden,
            heads=heads,
            kv_heads=int(metadata.get("llama.attention.head_count_kv", heads)),
            head_dim=int(metadata.get("llama.attention.key_length", hidden // max(heads, 1))),
            ff=int(metadata["llama.feed_forward_length"]),
            vocab=tensors["token_embd.weight"].shape[0],
            rope_base=float(metadata.get("llama.rope.freq_base", 10_000.0)),
            eps=float(metadata["llama.attention.layer_norm_rms_epsilon"]),
            context=int(metadata["llama.context_length"]),
            tied="output.weight" not in tensors,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptModel(f"the GGUF metadata lack or garble {error}") from error
    _check_config(config, int(metadata.get("llama.rope.dimension_count", config.head_dim)))
    return config


def _check_config(config: LlamaConfig, rope_dims: int) -> None:
    sizes = (config.layers, config.hidden, config.heads, config.kv_heads, config.ff, config.context)
    if min(sizes) < 1 or config.heads % config.kv_heads:
        raise CorruptModel(f"impossible sizes in the GGUF metadata: {config}")
    if rope_dims != config.head_dim or config.head_dim % 2:
        raise UnsupportedModel(f"RoPE over {rope_dims} of {config.head_dim} dimensions")


def _check_shapes(config: LlamaConfig, tensors: Mapping[str, Tensor]) -> None:
    for name, shape in expected_shapes(config).items():
        found = tensors.get(name)
        if found is None:
            raise CorruptModel(f"the GGUF file lacks tensor {name}")
        if found.shape != shape:
            raise CorruptModel(f"tensor {name} has shape {found.shape}, expected {shape}")
    unknown = set(tensors) - set(expected_shapes(config))
    if unknown:
        raise UnsupportedModel(f"tensors the builder does not know: {sorted(unknown)[:5]}")


def expected_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor such a model has, by GGUF name, rows first."""
    h, q, kv = config.hidden, config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (config.vocab, h),
        "output_norm.weight": (h,),
    }
    if not config.tied:
        shapes["output.weight"] = (config.vocab, h)
    block: dict[str, tuple[int, ...]] = {
        "attn_norm": (h,), "attn_q": (q, h), "attn_k": (kv, h), "attn_v": (kv, h),
        "attn_output": (h, q), "ffn_norm": (h,),
        "ffn_gate": (config.ff, h), "ffn_up": (config.ff, h), "ffn_down": (h, config.ff),
    }  # fmt: skip
    for layer in range(config.layers):
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    return shapes
