"""Forms are made ready beside the loop, and in time."""

from __future__ import annotations

import threading
import time

import pytest

from services.common.deadline import Budget
from services.common.errors import DeadlineExceeded, InvalidField
from services.edge_worker.form import Form, LabelForm, RegexForm
from services.edge_worker.form_desk import FormDesk
from services.edge_worker.held import FREE, HeldForm


class Compiler:
    """Counts, and waits where it is told to."""

    def __init__(self) -> None:
        self.seen: list[Form] = []
        self.threads: set[str] = set()
        self.go = threading.Event()
        self.go.set()

    def __call__(self, form: Form) -> HeldForm:
        self.seen.append(form)
        self.threads.add(threading.current_thread().name)
        self.go.wait(10)
        if form == RegexForm("("):
            raise InvalidField("output.regex", "broken")
        return HeldForm(lambda: None)


def budget(ms: float = 10_000) -> Budget:
    now = time.monotonic()
    return Budget(10_000, 0, now, now + ms / 1000.0)


async def test_nothing_is_kept_for_the_next_request() -> None:
    """Copies of one grammar share the bound of its states: found by using one up."""
    compiler = Compiler()
    desk = FormDesk(compiler)
    for _ in range(2):
        await desk.ready(RegexForm("x"), budget())
    assert len(compiler.seen) == 2
    desk.close()


async def test_the_loop_does_not_compile() -> None:
    compiler = Compiler()
    desk = FormDesk(compiler)
    await desk.ready(RegexForm("x"), budget())
    assert threading.current_thread().name not in compiler.threads
    desk.close()


async def test_free_text_and_labels_need_no_thread() -> None:
    compiler = Compiler()
    desk = FormDesk(compiler)
    assert await desk.ready(None, budget()) is FREE
    await desk.ready(LabelForm(("x", "y")), budget())
    assert compiler.threads == {threading.current_thread().name}
    desk.close()


async def test_a_compiler_that_takes_too_long_costs_no_more_than_the_budget() -> None:
    compiler = Compiler()
    compiler.go.clear()
    desk = FormDesk(compiler)
    with pytest.raises(DeadlineExceeded):
        await desk.ready(RegexForm("x"), budget(50))
    compiler.go.set()
    desk.close()


async def test_a_refusal_reaches_the_caller() -> None:
    desk = FormDesk(Compiler())
    with pytest.raises(InvalidField):
        await desk.ready(RegexForm("("), budget())
    desk.close()
