"""A loaded model as the rest of the worker sees it: runtime, prompts, text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.common.errors import ConfigInvalid
from services.common.weights.errors import ModelError
from services.edge_worker.answer import Decoder
from services.edge_worker.chat_template import ChatTemplate, PromptBuilder, TemplateError, Turn
from services.edge_worker.config import RuntimeSettings
from services.edge_worker.grammar import GrammarCompiler, read_vocabulary
from services.edge_worker.held import FormCompiler, ModelForms
from services.edge_worker.kit.manifest import read_manifest
from services.edge_worker.runtime.base import Runtime
from services.edge_worker.runtime.onnx import OnnxOptions, OnnxRuntime
from services.edge_worker.tokenizer import StreamDecoder, TextTokenizer


class Prompts(Protocol):
    """Conversation to prompt ids."""

    def build(self, turns: Sequence[Turn], system: str = "") -> list[int]:
        """Ids up to and including the opening of the assistant's turn.

        Raises:
            TemplateError: The template does not take these turns.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What `EdgeApp` needs; a fake of it needs no files.

    Attributes:
        runtime: Weights.
        prompts: Builds prompts; safe to call from several threads.
        encode: Text of a caller to tokens, without any control token.
        compile_form: Makes the form of an answer ready.
        new_decoder: Starts one stream of text.
    """

    runtime: Runtime
    prompts: Prompts
    encode: Callable[[str], list[int]]
    compile_form: FormCompiler
    new_decoder: Callable[[], Decoder]


def load_onnx(settings: RuntimeSettings) -> LoadedModel:
    """Opens a built model; takes seconds and blocks.

    Raises:
        ConfigInvalid: No such model, a damaged one, or a provider is absent.
    """
    options = OnnxOptions(
        providers=settings.providers,
        threads=settings.threads or None,
        arena=settings.arena,
        engine_cache=settings.engine_cache,
    )
    folder = settings.model_dir
    try:
        manifest = read_manifest(folder)
        runtime = OnnxRuntime.load(folder, options, check_hashes=settings.check_hashes)
        tokenizer = TextTokenizer.load(folder / manifest.tokenizer_file)
        template = ChatTemplate.load(folder / manifest.chat_template_file)
    except (ModelError, TemplateError) as exc:
        raise ConfigInvalid(f"runtime: {exc}") from exc
    info = runtime.info
    vocabulary = read_vocabulary(
        (folder / manifest.tokenizer_file).read_text(), info.vocab_size, info.eos_ids
    )
    forms = ModelForms(
        tokenizer.encode_user, GrammarCompiler(vocabulary, info.eos_ids), info.eos_ids
    )
    return LoadedModel(
        runtime=runtime,
        prompts=PromptBuilder(tokenizer, template, manifest.bos_id),
        encode=tokenizer.encode_user,
        compile_form=forms,
        new_decoder=lambda: StreamDecoder(tokenizer),
    )
