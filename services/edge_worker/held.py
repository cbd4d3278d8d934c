"""From the form that a request asks for to constraints that hold answers to it.

Two mechanisms behind one `Constraint`: labels are finite, so a trie over their own tokens
is exact, costs no mask and bounds the answer's length; what is not finite needs a grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.edge_worker.constraint import Constraint, LabelConstraint
from services.edge_worker.form import Form, LabelForm
from services.edge_worker.grammar import GrammarCompiler
from services.edge_worker.label_trie import build_trie


@dataclass(frozen=True, slots=True)
class HeldForm:
    """A form made ready.

    Attributes:
        start: Makes the constraint of one answer; None leaves the answer free.
        longest_tokens: Most tokens that an answer needs, end token included; None: unknown.
    """

    start: Callable[[], Constraint | None]
    longest_tokens: int | None = None


FREE = HeldForm(start=lambda: None)


class FormCompiler(Protocol):
    """Makes forms ready; may be called from several threads."""

    def __call__(self, form: Form) -> HeldForm:
        """Takes up to 0.1 s.

        Raises:
            InvalidField: The form cannot be held.
        """
        ...


class ModelForms:
    """Implements `FormCompiler` for one vocabulary.

    Args:
        encode: Text to tokens.
        grammars: Compiles what is not a set of labels.
        end_ids: Tokens that end an answer.
    """

    def __init__(
        self,
        encode: Callable[[str], Sequence[int]],
        grammars: GrammarCompiler,
        end_ids: Collection[int],
    ) -> None:
        self._encode = encode
        self._grammars = grammars
        self._end_ids = end_ids

    def __call__(self, form: Form) -> HeldForm:
        """See `FormCompiler`."""
        if not isinstance(form, LabelForm):
            return HeldForm(self._grammars.compile(form).start)
        encodings = [self._encode(label) for label in form.labels]
        root = build_trie(encodings)
        return HeldForm(
            start=lambda: LabelConstraint(root, self._end_ids),
            longest_tokens=max(map(len, encodings)) + 1,
        )
