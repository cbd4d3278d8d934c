"""The manifest beside a built model: what it is, and how to check that it is whole."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.weights.errors import CorruptModel, ModelNotBuilt
from services.common.weights.files import sha256_of

MANIFEST_FILE = "manifest.json"
FORMAT = 1
KV_DTYPES = {"float32": 4, "int8": 1}
"""Types a cache may have, with their size in bytes."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a built model."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class KvLayout:
    """Cache of one layer: keys and values, each `[rows, kv_heads, capacity, head_dim]`."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: str

    def __post_init__(self) -> None:
        """Refuses a type no runtime knows.

        Raises:
            ValueError: The type is unknown.
        """
        if self.dtype not in KV_DTYPES:
            raise ValueError(f"KV cache of type {self.dtype!r}")

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one position over all layers, keys and values."""
        return 2 * self.layers * self.kv_heads * self.head_dim * KV_DTYPES[self.dtype]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything the worker must know before it opens the model.

    Attributes:
        model_id: Hash of source weights, builder version and recipe.
        name: Short name, e.g. `smollm2-135m-instruct`.
        source: Where the weights come from, with version.
        source_sha256: Hash of the GGUF file.
        licence: SPDX identifier of the weights.
        recipe: `q8` or `fp32`.
        builder_version: Version of the graph builder.
        context_tokens: Longest sequence.
        vocab_size: Length of a row of logits.
        eos_ids: Tokens that end an answer.
        bos_id: Token to put before every prompt, None where the template does it.
        kv: Layout of the cache.
        tokenizer_file: Name of the tokenizer beside the manifest.
        chat_template_file: Name of the jinja template beside the manifest.
        files: Every other file of the model.
    """

    model_id: str
    name: str
    source: str
    source_sha256: str
    licence: str
    recipe: str
    builder_version: str
    context_tokens: int
    vocab_size: int
    eos_ids: tuple[int, ...]
    bos_id: int | None
    kv: KvLayout
    tokenizer_file: str
    chat_template_file: str
    files: tuple[ModelFile, ...]


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Writes `manifest.json` into `folder`."""
    text = json.dumps({"format": FORMAT, **dataclasses.asdict(manifest)}, indent=2)
    (folder / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a built model.

    Raises:
        ModelNotBuilt: There is none.
        CorruptModel: It cannot be understood.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise ModelNotBuilt(f"no model in {folder}: run `tandem models build` first")
    try:
        return _parse(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptModel(f"{path} is not a manifest this version can read: {error}") from error


def _parse(fields: dict[str, Any]) -> Manifest:
    found = fields.pop("format")
    if found != FORMAT:
        raise ValueError(f"format {found}, expected {FORMAT}")
    fields["kv"] = KvLayout(**fields["kv"])
    fields["eos_ids"] = tuple(fields["eos_ids"])
    fields["files"] = tuple(ModelFile(**entry) for entry in fields["files"])
    return Manifest(**fields)


def check_files(manifest: Manifest, folder: Path, *, hashes: bool) -> None:
    """Compares the files with the manifest: sizes always, contents if `hashes`.

    Raises:
        CorruptModel: A file is missing, has another size or other contents.
    """
    for entry in manifest.files:
        path = folder / entry.name
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            found = "is missing" if size is None else f"has {size} bytes"
            raise CorruptModel(f"{path} {found}, the manifest says {entry.bytes}: rebuild it")
        if hashes and sha256_of(path) != entry.sha256:
            raise CorruptModel(f"{path} differs from what was built: rebuild it")


def describe_file(path: Path) -> ModelFile:
    """Name, size and hash of a file."""
    return ModelFile(path.name, path.stat().st_size, sha256_of(path))
