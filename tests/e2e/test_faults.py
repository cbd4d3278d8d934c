"""Processes killed, stopped and gone, and callers that leave, at every stage.

No test here asserts a time closely: `benchmarks/spine.py` measures overrun. What is
asserted is that every call ends, how it ends, that slots and connections are given
back, and that each request leaves exactly one record.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2
from tests.e2e.harness import Result, Tandem, eventually, question

LONG = "[[say:" + "One sentence is here. " + "and on it goes " * 20 + "]]"
HARD = "计算三笔分期的实际年化利率"
# Three times this is what a call may take at most before it counts as hanging.
DEADLINE_MS = 3_000


def request_id_of(result: Result) -> str:
    return result.events[0].decision.request_id


def kill_when(
    tandem: Tandem, name: str, when: Callable[[router_pb2.RouteStreamResponse], bool]
) -> Callable[[router_pb2.RouteStreamResponse], None]:
    """Kills a service once, when an event fits."""
    done: list[bool] = []

    def on_event(event: router_pb2.RouteStreamResponse) -> None:
        if not done and when(event):
            done.append(True)
            os.kill(tandem.pid(name), signal.SIGKILL)

    return on_event


def test_edge_killed_before_the_commit_point_gives_one_whole_cloud_answer(tandem: Tandem) -> None:
    killer = threading.Timer(0.4, lambda: os.kill(tandem.pid("edge"), signal.SIGKILL))
    killer.start()
    # Held: nothing is shown before the end, so the whole edge answer is before the commit point.
    result = tandem.stream(question(f"go {LONG}", stream_mode=1))
    killer.join()
    try:
        assert result.served == ("L2", "CLOUD_SMALL", "EDGE_UNAVAILABLE", "UNAVAILABLE")
        assert result.text == "The fake upstream answers in a few words."
        assert not result.outcome.partial
        assert len(tandem.upstream.seen()) == 1
        assert len(tandem.wait_rows(request_id_of(result))) == 1
    finally:
        tandem.restart_edge()


def test_edge_killed_after_the_commit_point_gives_a_marked_part(tandem: Tandem) -> None:
    result = tandem.stream(
        question(f"go {LONG}"), on_event=kill_when(tandem, "edge", lambda e: e.HasField("chunk"))
    )
    try:
        assert result.served == ("L0", "EDGE", "TRIVIAL_RULE", "UNAVAILABLE")
        assert result.outcome.partial
        assert result.outcome.finish_reason == chat_pb2.FINISH_REASON_INTERRUPTED
        assert result.outcome.notice
        assert result.text.startswith("One sentence is here.")
        assert "fake upstream" not in result.text
        assert tandem.upstream.seen() == []
        (row,) = tandem.wait_rows(request_id_of(result))
        assert row["partial"] and row["attempts"][0]["outcome"] == "PARTIAL"
    finally:
        tandem.restart_edge()


def test_edge_down_goes_to_the_cloud_and_back(tandem: Tandem) -> None:
    tandem.edge.process.kill()
    tandem.edge.process.wait()
    try:
        result = tandem.stream(question("hello [[say:Hi.]]"))
        assert result.served == ("L2", "CLOUD_SMALL", "EDGE_UNAVAILABLE", "UNAVAILABLE")
    finally:
        tandem.restart_edge()
    assert tandem.stream(question("hello [[say:Hi.]]")).served[1] == "EDGE"


@pytest.mark.parametrize("status", [401, 500, 503])
def test_upstream_refusing_gives_a_degraded_edge_answer(tandem: Tandem, status: int) -> None:
    tandem.upstream.default(status=status)
    result = tandem.stream(question(f"{HARD} [[say:About 15.]]"))
    assert result.served == ("L0", "EDGE", "UPSTREAM_FAILED", "UNAVAILABLE")
    assert result.outcome.degraded and result.outcome.notice
    assert result.text == "About 15."
    assert "leaked-key" not in str(result.events)


def test_upstream_cut_after_commit_gives_a_marked_part(tandem: Tandem) -> None:
    tandem.upstream.default(text="First sentence here. Second one " + "and more " * 30, cut_after=9)
    result = tandem.stream(question(HARD))
    assert result.served[:2] == ("L3", "CLOUD_LARGE")
    assert result.outcome.partial
    assert result.text.startswith("First sentence here. ")


def test_both_down_gives_a_canned_reply_with_options(tandem: Tandem) -> None:
    tandem.upstream.default(status=500)
    tandem.edge.process.kill()
    tandem.edge.process.wait()
    try:
        result = tandem.stream(question("hello"), deadline_ms=DEADLINE_MS)
        assert result.code is grpc.StatusCode.OK
        assert result.served[:2] == ("L4", "FALLBACK")
        assert result.served[3] == "UNAVAILABLE"
        assert result.text and result.outcome.degraded and list(result.outcome.options)
        chinese = tandem.stream(question(HARD), deadline_ms=DEADLINE_MS)
        assert chinese.text == "现在无法回答这个问题。"
    finally:
        tandem.restart_edge()


@pytest.mark.parametrize("name", ["edge", "cloud", "upstream", "router"])
@pytest.mark.parametrize("text", ["hello [[say:Hi.]]", HARD])
def test_a_stopped_process_never_makes_a_call_hang(tandem: Tandem, name: str, text: str) -> None:
    with tandem.stopped(name), ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(tandem.stream, question(text), deadline_ms=300) for _ in range(4)]
        results = [call.result(timeout=30) for call in calls]
    for result in results:
        if name == "router":
            assert result.code is grpc.StatusCode.DEADLINE_EXCEEDED
        else:
            assert result.code is grpc.StatusCode.OK
            assert result.events[-1].HasField("final")
    eventually(tandem.edge_idle, "slots given back")
    if name == "edge":
        tandem.restart_edge()


def leave_when(
    tandem: Tandem, request: router_pb2.RouteRequest, leave: Callable[[Any], None]
) -> str:
    """Starts a stream, calls `leave(call)`, cancels, and returns the request id."""
    request_id = f"leave-{time.monotonic_ns()}"
    call = tandem.stub.RouteStream(
        router_pb2.RouteStreamRequest(request=request),
        timeout=20,
        metadata=[("deadline_ms", "20000"), ("x-request-id", request_id)],
    )
    leave(call)
    call.cancel()
    return request_id


def at_once(call: Any) -> None:
    next(call)


def while_it_runs(call: Any) -> None:
    next(call)
    time.sleep(0.5)


def after_the_first_chunk(call: Any) -> None:
    while not next(call).HasField("chunk"):
        pass


STAGES = [at_once, while_it_runs, after_the_first_chunk]


@pytest.mark.parametrize("stage", STAGES)
def test_a_caller_who_leaves_frees_the_slot(tandem: Tandem, stage: Callable[[Any], None]) -> None:
    request_id = leave_when(tandem, question(f"go {LONG}"), stage)
    eventually(tandem.edge_idle, "slot given back")
    (row,) = tandem.wait_rows(request_id)
    assert row["ended"] == "CANCELLED"
    time.sleep(0.3)
    assert len(tandem.wait_rows(request_id)) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_caller_who_leaves_closes_the_upstream(
    tandem: Tandem, stage: Callable[[Any], None]
) -> None:
    tandem.upstream.default(text="First sentence here. " + "word " * 300, chunk_ms=50, ttft_ms=100)
    request_id = leave_when(tandem, question(HARD), stage)
    (row,) = tandem.wait_rows(request_id)
    assert row["ended"] == "CANCELLED"
    if stage is not at_once:
        tandem.upstream.wait_outcome("disconnected")


def test_every_request_of_a_storm_ends_with_one_record(tandem: Tandem) -> None:
    """Forty calls, mixed questions, some leave, some are too late; none is lost or doubled."""
    tandem.upstream.default(chunk_ms=20)
    before = len(tandem.ledger())

    def one(number: int) -> str:
        text = HARD if number % 3 == 0 else "hello [[say:Hi there. You are well.]]"
        if number % 5 == 0:
            leave_when(tandem, question(text), at_once)
            return "left"
        deadline_ms = 120 if number % 7 == 0 else 20_000
        return tandem.stream(question(text), deadline_ms=deadline_ms).code.name

    with ThreadPoolExecutor(20) as pool:
        ends = list(pool.map(one, range(40)))
    assert set(ends) <= {"OK", "left", "DEADLINE_EXCEEDED"}
    assert ends.count("OK") >= 20
    late = ends.count("DEADLINE_EXCEEDED")
    # A call whose deadline passed before the router saw it left no record: it was never served.
    eventually(lambda: len(tandem.ledger()) - before >= 40 - late, "forty rows")
    time.sleep(0.5)
    rows = tandem.ledger()[before:]
    assert 40 - late <= len(rows) <= 40
    assert len({row["request_id"] for row in rows}) == len(rows)
    eventually(tandem.edge_idle, "slots given back")
