"""Rebuilds a tokenizer from the vocabulary that a GGUF file carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from services.common.weights.errors import CorruptModel, UnsupportedModel

_CONTROL = 3
_USER_DEFINED = 4
# Tokens that end an answer whatever the file's single eos id says.
_END_TOKENS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>")


def build_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """A byte-level BPE tokenizer with single digits, as SmolLM2's own.

    Raises:
        UnsupportedModel: Another kind of tokenizer.
        CorruptModel: Vocabulary or merges are missing or contradict each other.
    """
    kind = (metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise UnsupportedModel(f"tokenizer {kind}: only ('gpt2', 'smollm') can be built")
    try:
        tokens: list[str] = metadata["tokenizer.ggml.tokens"]
        merges = [_pair(merge) for merge in metadata["tokenizer.ggml.merges"]]
        vocabulary = {token: index for index, token in enumerate(tokens)}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    except Exception as error:  # the Rust side raises bare Exception
        raise CorruptModel(f"the GGUF vocabulary cannot be used: {error}") from error
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(tokens[i], special=True, normalized=False) for i in _special(metadata)]
    tokenizer.add_special_tokens(special)
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
    left, right = merge.split(" ")
    return left, right


def _special(metadata: Mapping[str, Any]) -> list[int]:
    types = metadata.get("tokenizer.ggml.token_type", [])
    return [i for i, kind in enumerate(types) if kind in (_CONTROL, _USER_DEFINED)]


def eos_ids(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """Ids that end an answer: the file's own and the well-known end tokens it has."""
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    named = {i for i in _special(metadata) if tokens[i] in _END_TOKENS}
    own = metadata.get("tokenizer.ggml.eos_token_id")
    return tuple(sorted(named if own is None else named | {int(own)}))


def bos_id(metadata: Mapping[str, Any]) -> int | None:
    """Id to put before every prompt, None where the chat template does it."""
    if not metadata.get("tokenizer.ggml.add_bos_token", False):
        return None
    return int(metadata["tokenizer.ggml.bos_token_id"])
