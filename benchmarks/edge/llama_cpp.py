"""llama.cpp as a peer: fetched from registries, its files made, its decode loop."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.edge import llama_abi as abi
from services.common.weights.source import SMOLLM2, obtain_gguf

VERSION: Final = "3.22.1"
_TARBALL: Final = f"https://registry.npmjs.org/@node-llama-cpp/linux-x64/-/linux-x64-{VERSION}.tgz"
_SHA512: Final = (
    "5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg=="
)
_INSIDE: Final = "package/bins/linux-x64/"
Ids = NDArray[np.int64]
QUANTIZATIONS: Final = {"q8_0": abi.Q8_0, "q4_0": abi.Q4_0}


class PeerUnavailable(RuntimeError):
    """The peer cannot be fetched or loaded here; the benchmark goes on without it."""


def prepare(folder: Path) -> tuple[Any, dict[str, Path]]:
    """Fetches the library and makes the model files, once.

    Args:
        folder: Where they are kept, e.g. `build/bench/llama.cpp`.

    Returns:
        The library, and a GGUF file for each of `QUANTIZATIONS`.

    Raises:
        PeerUnavailable: No network, another platform, another file than the pinned one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        library = abi.open_library(_binaries(folder / VERSION))
        return library, _models(library, folder)
    except Exception as error:  # whatever it is, our own figures are still wanted
        raise PeerUnavailable(f"llama.cpp {VERSION}: {error}") from error


def _binaries(folder: Path) -> Path:
    if not folder.is_dir():
        data = httpx.get(_TARBALL, timeout=300, follow_redirects=True).raise_for_status().content
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != _SHA512:
            raise PeerUnavailable(f"{_TARBALL} is not the pinned file")
        partial = folder.with_suffix(".partial")
        partial.mkdir(exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                if member.isfile() and member.name.startswith(f"{_INSIDE}lib"):
                    inside = archive.extractfile(member)
                    if inside is not None:
                        (partial / Path(member.name).name).write_bytes(inside.read())
        partial.rename(folder)
    return folder


def _models(library: Any, folder: Path) -> dict[str, Path]:
    paths = {name: folder / f"{SMOLLM2.name}.{name}.gguf" for name in QUANTIZATIONS}
    if not all(path.is_file() for path in paths.values()):
        source = obtain_gguf(SMOLLM2, folder)
        for name, path in paths.items():
            _requantize(library, source, path, QUANTIZATIONS[name])
    return paths


def _requantize(library: Any, source: Path, target: Path, kind: int) -> None:
    params = library.llama_model_quantize_default_params()
    params.ftype = kind
    params.allow_requantize = True
    partial = target.with_suffix(".partial")
    failed = library.llama_model_quantize(str(source).encode(), str(partial).encode(), params)
    if failed:
        raise PeerUnavailable(f"cannot make {target.name}")
    partial.rename(target)


class LlamaCpp:
    """One model with room for `streams` sequences of `row_tokens`; greedy only."""

    def __init__(
        self, library: Any, path: Path, streams: int, row_tokens: int, threads: int, vocab: int
    ) -> None:
        self._lib = library
        self._vocab = vocab
        self._model = library.llama_model_load_from_file(
            str(path).encode(), library.llama_model_default_params()
        )
        params = library.llama_context_default_params()
        params.n_ctx, params.n_seq_max = streams * row_tokens, streams
        params.n_outputs_max = streams
        params.n_threads = params.n_threads_batch = threads
        self._context = library.llama_init_from_model(self._model, params)
        if not self._context:
            raise PeerUnavailable(f"cannot open {path.name}")
        self._batch = library.llama_batch_init(max(streams, row_tokens), 0, 1)

    def clear(self) -> None:
        """Forgets all sequences."""
        self._lib.llama_memory_clear(self._lib.llama_get_memory(self._context), False)

    def prefill(self, sequence: int, tokens: Sequence[int]) -> int:
        """Reads a prompt; returns its greedy next token."""
        last = len(tokens) - 1
        entries = [(token, at, sequence, at == last) for at, token in enumerate(tokens)]
        return int(self._run(entries, 1)[0])

    def decode(self, tokens: Ids, past: Ids) -> Ids:
        """Advances sequences 0..B-1 by one token each; returns the greedy next ones."""
        entries = [
            (int(token), int(at), sequence, True)
            for sequence, (token, at) in enumerate(zip(tokens, past, strict=True))
        ]
        return self._run(entries, len(entries))

    def _run(self, entries: Sequence[tuple[int, int, int, bool]], rows: int) -> Ids:
        batch = self._batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, wanted) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        if code := self._lib.llama_decode(self._context, batch):
            raise RuntimeError(f"llama_decode gave {code}")
        logits = np.ctypeslib.as_array(
            self._lib.llama_get_logits(self._context), (rows, self._vocab)
        )
        best: Ids = logits.argmax(axis=1)
        return best

    def close(self) -> None:
        """Frees everything."""
        self._lib.llama_batch_free(self._batch)
        self._lib.llama_free(self._context)
        self._lib.llama_model_free(self._model)
