"""`tandem trim diff`: what the escalation payload keeps of a conversation, side by side."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from evaluation.dialogues import Dialogue, generate_dialogues
from services.router.policy.payload import PayloadPolicy
from services.router.policy.trim import (
    Conversation,
    EdgeDraft,
    Passage,
    Payload,
    Turn,
    trim,
)

trim_app = typer.Typer(
    name="trim",
    help="Look at what is sent on when a question is escalated.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@trim_app.callback()
def _trim() -> None:
    """Keeps `diff` a command of its own while it is the only one."""


@trim_app.command()
def diff(
    sample: Annotated[int, typer.Option("--sample", help="So many dialogues.", min=1)] = 20,
    seed: Annotated[int, typer.Option("--seed")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the sums.")] = False,
) -> None:
    """Before and after, side by side, on generated support dialogues with known constraints.

    Example:

      tandem trim diff --sample 20
    """
    console = Console()
    dialogues = generate_dialogues(sample, seed)
    payloads = [trim(conversation_of(one), PayloadPolicy()) for one in dialogues]
    if not quiet:
        for dialogue, payload in zip(dialogues, payloads, strict=True):
            _show(console, dialogue, payload)
    before = sum(payload.tokens_before for payload in payloads)
    after = sum(payload.tokens_after for payload in payloads)
    lost = [
        one for pair in zip(dialogues, payloads, strict=True) for one in lost_constraints(*pair)
    ]
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    stated = sum(len(dialogue.constraints) for dialogue in dialogues)
    console.print(
        f"{len(dialogues)} dialogues, {turns} turns: {before} tokens before, {after} after "
        f"({after / before:.0%}); {len(lost)} of {stated} constraints lost"
    )
    for one in lost:
        console.print(f"lost: {one}")


def conversation_of(dialogue: Dialogue) -> Conversation:
    """A dialogue as the trimmer takes it."""
    return Conversation(
        instruction=dialogue.system,
        slots=dialogue.slots,
        turns=tuple(
            Turn("user" if role == "user" else "assistant", text) for role, text in dialogue.turns
        ),
        passages=tuple(Passage(*one) for one in dialogue.passages),
        draft=EdgeDraft(dialogue.draft, 0.42, "LOW_CONFIDENCE"),
    )


def lost_constraints(dialogue: Dialogue, payload: Payload) -> list[str]:
    """Constraints that are nowhere in what is sent."""
    sent = "\n".join([payload.instruction, *(turn.text for turn in payload.turns)])
    return [one for one in dialogue.constraints if one not in sent]


def _show(console: Console, dialogue: Dialogue, payload: Payload) -> None:
    table = Table(
        f"before: {payload.tokens_before} tokens", f"after: {payload.tokens_after}", box=SIMPLE
    )
    before = "\n".join(f"{role}: {text}" for role, text in dialogue.turns)
    after = "\n".join([payload.instruction, *(f"{one.role}: {one.text}" for one in payload.turns)])
    table.add_row(before, after)
    console.print(table, markup=False)
