"""Chat messages to token ids such that no caller text can act as control.

The template is rendered with placeholders that nobody can guess in place of the
contents. Cutting the result at the placeholders gives pieces that are the template's
own, in which control tokens count, and pieces that are a caller's, in which nothing does.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.edge_worker.tokenizer import TextTokenizer

Role = Literal["user", "assistant", "system", "tool"]

DEFAULT_SYSTEM = "You are a helpful assistant."
MAX_SOURCE_CHARS = 65_536
MAX_TURNS = 2_048
# Room for the template's own words around each turn; contents are not part of it.
_MAX_RENDERED_CHARS = 1_048_576
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class TemplateError(ValueError):
    """The template cannot be used, or not for these turns."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered prompt.

    Attributes:
        text: The piece.
        control: True for the template's own words, in which control tokens count.
    """

    text: str
    control: bool


class ChatTemplate:
    """A jinja chat template in a sandbox: no access to attributes, files or code."""

    def __init__(self, source: str, variables: Mapping[str, str] = _NO_VARIABLES) -> None:
        """Compiles the template.

        Args:
            source: Its text, at most 65,536 characters.
            variables: What it may read besides the messages, e.g. `bos_token`.

        Raises:
            TemplateError: Empty, too long, or not a jinja template.
        """
        if not 0 < len(source) <= MAX_SOURCE_CHARS:
            raise TemplateError(f"a chat template of {len(source)} characters")
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
        )
        environment.globals["raise_exception"] = _refuse
        self._variables = dict(variables)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise TemplateError(f"the chat template does not compile: {error}") from error

    @classmethod
    def load(cls, path: Path) -> ChatTemplate:
        """Reads a template file.

        Raises:
            TemplateError: As the constructor, or no such file.
        """
        try:
            return cls(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise TemplateError(f"cannot read the chat template: {error}") from error

    def render(
        self, messages: Sequence[Turn], *, system: str, add_generation_prompt: bool = True
    ) -> list[Segment]:
        """Renders a conversation.

        Args:
            messages: At least one turn.
            system: Instructions; empty: `DEFAULT_SYSTEM`, never the template's own text.
            add_generation_prompt: End with the opening of the assistant's turn.

        Raises:
            TemplateError: No or too many turns, or the template refuses or drops one.
        """
        if not 0 < len(messages) <= MAX_TURNS:
            raise TemplateError(f"{len(messages)} turns: a prompt has 1..{MAX_TURNS}")
        turns = [Turn("system", system or DEFAULT_SYSTEM), *messages]
        key = secrets.token_hex(16)
        rendered = self._render(turns, key, add_generation_prompt)
        segments, used = _cut(rendered, turns, key)
        missing = set(range(len(turns))) - used
        if missing:
            raise TemplateError(f"the chat template drops a {turns[min(missing)].role} turn")
        return segments

    def _render(self, turns: Sequence[Turn], key: str, add_generation_prompt: bool) -> str:
        messages = [
            {"role": turn.role, "content": _placeholder(key, index)}
            for index, turn in enumerate(turns)
        ]
        pieces: list[str] = []
        size = 0
        try:
            for piece in self._template.generate(
                messages=messages, add_generation_prompt=add_generation_prompt, **self._variables
            ):
                size += len(piece)
                if size > _MAX_RENDERED_CHARS:
                    raise TemplateError("the chat template renders without end")
                pieces.append(piece)
        except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError) as error:
            raise TemplateError(f"the chat template fails: {error}") from error
        return "".join(pieces)


class PromptBuilder:
    """Conversation to prompt ids, by a tokenizer and its model's template."""

    def __init__(
        self, tokenizer: TextTokenizer, template: ChatTemplate, bos_id: int | None = None
    ) -> None:
        """Keeps the parts; `bos_id` is put in front where the template does not."""
        self._tokenizer = tokenizer
        self._template = template
        self._prefix = [] if bos_id is None else [bos_id]

    def build(self, turns: Sequence[Turn], system: str = "") -> list[int]:
        """Ids up to and including the opening of the assistant's turn.

        Raises:
            TemplateError: As `ChatTemplate.render`.
        """
        ids = list(self._prefix)
        for segment in self._template.render(turns, system=system):
            encode = (
                self._tokenizer.encode_template if segment.control else self._tokenizer.encode_user
            )
            ids += encode(segment.text)
        return ids


def _placeholder(key: str, index: int) -> str:
    return f"[{key}:{index}]"


def _cut(rendered: str, turns: Sequence[Turn], key: str) -> tuple[list[Segment], set[int]]:
    """Segments without empty ones, and the indices of the turns that occur."""
    segments: list[Segment] = []
    used: set[int] = set()
    # With one group, odd parts of the split are the indices.
    for position, part in enumerate(re.split(rf"\[{key}:(\d+)\]", rendered)):
        if position % 2:
            used.add(int(part))
            segments.append(Segment(turns[int(part)].text, control=False))
        else:
            segments.append(Segment(part, control=True))
    return [segment for segment in segments if segment.text], used


def _refuse(message: str) -> NoReturn:
    raise TemplateError(f"the chat template refuses: {message}")
