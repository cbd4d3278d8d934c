"""Makes forms ready beside the event loop, within the time of the call."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from services.common.deadline import Budget
from services.common.errors import DeadlineExceeded
from services.edge_worker.form import Form, LabelForm
from services.edge_worker.held import FREE, FormCompiler, HeldForm

# One thread: compiling is bounded work, and the cores belong to the engine.
_THREADS: Final = 1


class FormDesk:
    """Lives on the event loop.

    Nothing is kept for the next request: copies of a compiled grammar share its automaton,
    so answers would use up one another's bound of states.

    Args:
        compiler: Does the work.
    """

    def __init__(self, compiler: FormCompiler) -> None:
        self._compiler = compiler
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="edge-forms")

    async def ready(self, form: Form | None, budget: Budget) -> HeldForm:
        """The form, made ready within what is left of the budget.

        Raises:
            InvalidField: It cannot be held.
            DeadlineExceeded: The budget passed before.
        """
        if form is None:
            return FREE
        if isinstance(form, LabelForm):
            return self._compiler(form)
        return await self._compile(form, budget)

    def close(self) -> None:
        """Lets go of the thread; what waits for it is given up."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _compile(self, form: Form, budget: Budget) -> HeldForm:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(budget.remaining_ms(time.monotonic()) / 1000.0):
                return await loop.run_in_executor(self._pool, self._compiler, form)
        except TimeoutError as exc:
            raise DeadlineExceeded("the deadline passed while the output form was read") from exc
