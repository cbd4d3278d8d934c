"""Answers held to a JSON schema or a regular expression, with llguidance.

A grammar is compiled for each request, off the event loop; its answers get copies that
follow it and say before each token which ones may come. Every step is bounded by fuel
counted in the parser, and by the processor time that masks of one answer may take
together, since masks are made on the engine's thread, between the steps of other rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, regex_to_lark

from services.common.contract import check_pattern, check_schema
from services.common.errors import InvalidField
from services.edge_worker.form import RegexForm, SchemaForm
from services.edge_worker.grammar_bounds import check_repetition, check_schema_cost
from services.edge_worker.sampling import Ids

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

# A tenth of the library's defaults and less: what ordinary schemas need was measured at
# a hundredth of them. Errors stay free of the caller's text.
_LIMITS: Final = LLParserLimits(
    initial_lexer_fuel=200_000,
    step_lexer_fuel=20_000,
    step_max_items=10_000,
    max_items_in_row=1_000,
    max_lexer_states=20_000,
    max_grammar_size=50_000,
    verbose_errors=False,
)
# As json.dumps writes it, which is what models have seen most; free white space would
# let a small model write line feeds until its cap. Keywords that a grammar cannot hold
# (uniqueItems, not, if) only widen it: whoever needs them checks the whole answer.
_JSON: Final[JsonCompileOptions] = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": True,
    "coerce_one_of": True,
}
_MASK_MS: Final = 100.0
_MASK_MS_PER_TOKEN: Final = 2.0
_TRIED_TOKENS: Final = 4
_TOO_COMPLEX: Final = "is too complex to hold an answer to"


def read_vocabulary(tokenizer_json: str, vocab_size: int, end_ids: Collection[int]) -> LLTokenizer:
    """The vocabulary of a `tokenizer.json` as llguidance sees it; takes 0.4 s."""
    return LLTokenizer(tokenizer_json, n_vocab=vocab_size, eos_token=sorted(end_ids))


class GrammarCompiler:
    """Compiles forms for one vocabulary; may be called from several threads.

    Args:
        tokenizer: The vocabulary as llguidance sees it.
        end_ids: Tokens that end an answer.
    """

    def __init__(self, tokenizer: LLTokenizer, end_ids: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._end_ids = frozenset(end_ids)

    def compile(self, form: SchemaForm | RegexForm) -> Grammar:
        """Checks and compiles; takes 1–100 ms, so never on the event loop.

        Raises:
            InvalidField: Broken, too large, too complex, or refers to something remote.
        """
        grammar = _schema_grammar(form) if isinstance(form, SchemaForm) else _regex_grammar(form)
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_LIMITS)
        compiled = Grammar(matcher, form.field, self._end_ids)
        if matcher.is_error():
            raise InvalidField(form.field, f"{_TOO_COMPLEX}, or nothing can fit it")
        self._try(compiled.start())
        return compiled

    def _try(self, constraint: GrammarConstraint) -> None:
        """A few tokens of some answer: there most grammars without bounds show it."""
        for _ in range(_TRIED_TOKENS):
            token = int(constraint.allowed()[-1])
            if token in self._end_ids:
                return
            constraint.take(token)
            if constraint.done:
                return


class Grammar:
    """A compiled form; answers get copies of it.

    Copies share the automaton that they build as they go, and its bound of states, so a
    grammar is for the samples of one request and not for the next.
    """

    def __init__(self, matcher: LLMatcher, field: str, end_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._field = field
        self._end_ids = end_ids

    def start(self) -> GrammarConstraint:
        """A constraint for one answer."""
        return GrammarConstraint(self._matcher.deep_copy(), self._field, self._end_ids)


class GrammarConstraint:
    """Implements `services.edge_worker.constraint.Constraint`; engine thread only."""

    def __init__(self, matcher: LLMatcher, field: str, end_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._field = field
        self._end_ids = end_ids
        self._allowance_ms = _MASK_MS

    def allowed(self) -> Ids:
        """See `Constraint.allowed`.

        Raises:
            InvalidField: The grammar ran out of its bounds.
        """
        # Processor time: being descheduled is not the grammar's fault.
        began = time.thread_time()
        mask = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        self._allowance_ms += _MASK_MS_PER_TOKEN - (time.thread_time() - began) * 1000.0
        tokens = np.flatnonzero(np.unpackbits(mask, bitorder="little"))
        if self._matcher.is_error() or not len(tokens) or self._allowance_ms < 0.0:
            raise InvalidField(self._field, _TOO_COMPLEX)
        return tokens

    def take(self, token: int) -> None:
        """See `Constraint.take`; InvalidField where the grammar ran out of its bounds."""
        if token not in self._end_ids and not self._matcher.consume_token(token):
            raise InvalidField(self._field, _TOO_COMPLEX)

    @property
    def done(self) -> bool:
        """See `Constraint.done`."""
        return self._matcher.is_stopped()


def _schema_grammar(form: SchemaForm) -> str:
    check_schema(form.field, form.text)
    check_schema_cost(form.field, form.text)
    try:
        return LLMatcher.grammar_from_json_schema(form.text, overrides=_JSON)
    except ValueError as exc:  # a number beyond 64 bits
        raise InvalidField(form.field, "holds a number that is out of range") from exc


def _regex_grammar(form: RegexForm) -> str:
    check_pattern(form.field, form.text)
    check_repetition(form.field, form.text)
    # ASCII classes: the check that judges the answer (ECMA 262) has no wider ones.
    return f"start: /{regex_to_lark(form.text, 'dws')}/"
