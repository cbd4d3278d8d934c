"""Where a request runs and how long it may get: shared by all that goes to the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from services.common.errors import ContextTooLong, InvalidField
from services.edge_worker.chat_template import TemplateError, Turn
from services.edge_worker.model import Prompts
from services.edge_worker.scheduler.lane import LaneLimits
from services.edge_worker.scheduler.plan import LaneName

Lanes = Mapping[LaneName, LaneLimits]


async def build_prompt(
    prompts: Prompts, turns: Sequence[Turn], system: str, *, off_loop: bool
) -> tuple[int, ...]:
    """Ids of the prompt, made on a thread where it is long.

    Raises:
        InvalidField: The chat template does not take these turns.
    """
    try:
        if off_loop:
            return tuple(await asyncio.to_thread(prompts.build, turns, system))
        return tuple(prompts.build(turns, system))
    except TemplateError as exc:
        raise InvalidField("messages", "the model's chat template refuses them") from exc


def choose_lane(lanes: Lanes, prompt_tokens: int, cap: int) -> LaneName:
    """Short ones go to the simple lane."""
    fits = prompt_tokens + cap <= lanes[LaneName.SIMPLE].longest_tokens
    return LaneName.SIMPLE if fits else LaneName.COMPLEX


def room_tokens(limits: LaneLimits, prompt_tokens: int, least: int, samples: int = 1) -> int:
    """Tokens that each of `samples` answers may have.

    Raises:
        ContextTooLong: Fewer than `least`.
    """
    longest = min(limits.row_tokens, limits.pool_tokens // samples)
    if prompt_tokens + least > longest:
        raise ContextTooLong(
            "messages",
            f"the prompt has {prompt_tokens} tokens and the answer at least {least}; "
            f"lane {limits.name} holds {longest} together",
        )
    return longest - prompt_tokens
