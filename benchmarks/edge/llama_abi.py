"""The part of llama.cpp's C interface that the comparison calls, for release v0.5.0.

Declared after its public header `llama.h`. The structures hold for that release alone, so
`open_library` compares the defaults that the library fills in with what they must be.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_float,
    c_int8,
    c_int32,
    c_size_t,
    c_uint32,
)
from ctypes import c_void_p as pointer
from pathlib import Path
from typing import Any

Q4_0, Q8_0 = 2, 7  # enum llama_ftype
_F16 = 1  # enum ggml_type


class LayoutMismatch(RuntimeError):
    """The library's structures are not those declared here."""


class ModelParams(Structure):
    """`struct llama_model_params`."""

    _fields_ = (
        ("devices", pointer), ("tensor_buft_overrides", pointer),
        ("n_gpu_layers", c_int32), ("split_mode", c_int32), ("load_mode", c_int32),
        ("lazy_mode", c_int32), ("main_gpu", c_int32), ("tensor_split", pointer),
        ("progress_callback", pointer), ("progress_callback_user_data", pointer),
        ("kv_overrides", pointer), ("vocab_only", c_bool), ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool), ("no_host", c_bool), ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    )  # fmt: skip


class ContextParams(Structure):
    """`struct llama_context_params`."""

    _fields_ = (
        ("n_ctx", c_uint32), ("n_batch", c_uint32), ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32), ("n_rs_seq", c_uint32), ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32), ("n_threads", c_int32),
        ("n_threads_batch", c_int32), ("ctx_type", c_int32), ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32), ("attention_type", c_int32), ("flash_attn_type", c_int32),
        ("rope_freq_base", c_float), ("rope_freq_scale", c_float), ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float), ("yarn_beta_fast", c_float), ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32), ("defrag_thold", c_float), ("cb_eval", pointer),
        ("cb_eval_user_data", pointer), ("type_k", c_int32), ("type_v", c_int32),
        ("abort_callback", pointer), ("abort_callback_data", pointer), ("embeddings", c_bool),
        ("offload_kqv", c_bool), ("no_perf", c_bool), ("op_offload", c_bool),
        ("swa_full", c_bool), ("kv_unified", c_bool), ("samplers", pointer),
        ("n_samplers", c_size_t), ("ctx_other", pointer),
    )  # fmt: skip


class QuantizeParams(Structure):
    """`struct llama_model_quantize_params`."""

    _fields_ = (
        ("nthread", c_int32), ("ftype", c_int32), ("output_tensor_type", c_int32),
        ("token_embedding_type", c_int32), ("allow_requantize", c_bool),
        ("quantize_output_tensor", c_bool), ("only_copy", c_bool), ("pure", c_bool),
        ("keep_split", c_bool), ("dry_run", c_bool), ("imatrix", pointer),
        ("kv_overrides", pointer), ("tt_overrides", pointer), ("prune_layers", pointer),
        ("max_buf_size", c_size_t),
    )  # fmt: skip


class Batch(Structure):
    """`struct llama_batch`."""

    _fields_ = (
        ("n_tokens", c_int32), ("token", POINTER(c_int32)), ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)), ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))), ("logits", POINTER(c_int8)),
    )  # fmt: skip


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, c_char_p, pointer)
_silent = _LOG(lambda _level, _text, _data: None)  # kept: the library holds its address
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_backend_init": (None, ()),
    "llama_log_set": (None, (_LOG, pointer)),
    "llama_print_system_info": (c_char_p, ()),
    "llama_model_default_params": (ModelParams, ()),
    "llama_context_default_params": (ContextParams, ()),
    "llama_model_quantize_default_params": (QuantizeParams, ()),
    "llama_model_quantize": (c_uint32, (c_char_p, c_char_p, POINTER(QuantizeParams))),
    "llama_model_load_from_file": (pointer, (c_char_p, ModelParams)),
    "llama_model_free": (None, (pointer,)),
    "llama_init_from_model": (pointer, (pointer, ContextParams)),
    "llama_free": (None, (pointer,)),
    "llama_get_memory": (pointer, (pointer,)),
    "llama_memory_clear": (None, (pointer, c_bool)),
    "llama_memory_seq_cp": (None, (pointer, c_int32, c_int32, c_int32, c_int32)),
    "llama_batch_init": (Batch, (c_int32, c_int32, c_int32)),
    "llama_batch_free": (None, (Batch,)),
    "llama_decode": (c_int32, (pointer, Batch)),
    "llama_get_logits": (POINTER(c_float), (pointer,)),
}


def open_library(folder: Path) -> Any:
    """Loads llama.cpp with the fastest of its CPU variants that this machine can run.

    Raises:
        OSError: A shared object is absent or cannot be loaded.
        LayoutMismatch: Another release than the declared one.
    """
    wide = ctypes.RTLD_GLOBAL
    ctypes.CDLL(str(folder / "libggml-base.so"), mode=wide)
    ggml = ctypes.CDLL(str(folder / "libggml.v0.5.0.so"), mode=wide)
    library = ctypes.CDLL(str(folder / "libllama.v0.5.0.so"), mode=wide)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    _check_layout(library)
    library.llama_log_set(_silent, None)
    ggml.ggml_log_set(_silent, None)
    ggml.ggml_backend_load_all_from_path(str(folder).encode())
    library.llama_backend_init()
    return library


def _check_layout(library: Any) -> None:
    model = library.llama_model_default_params()
    context = library.llama_context_default_params()
    quantize = library.llama_model_quantize_default_params()
    sane = (
        model.use_extra_bufts,
        (context.n_ctx, context.n_batch) == (512, 2048),
        (context.type_k, context.type_v, context.offload_kqv) == (_F16, _F16, True),
        context.ctx_other is None,
        quantize.quantize_output_tensor,
    )
    if not all(sane):
        raise LayoutMismatch("the structures of this llama.cpp are not those of v0.5.0")
