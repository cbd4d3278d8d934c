"""`tandem decide`: what would be done, and why."""

from __future__ import annotations

from typing import Annotated

import grpc
import typer
from google.protobuf.json_format import MessageToJson
from rich.console import Console
from rich.table import Table

from cli.client import RouterClient, build_request, fail, find_address, read_key
from cli.render import level_of, reason_of, target_of
from tandem.common.v1 import decision_pb2


def decide(
    question: Annotated[str, typer.Argument(help="The question.")],
    deadline_ms: Annotated[int, typer.Option(min=1, help="Whole budget, milliseconds.")] = 8_000,
    address: Annotated[str, typer.Option(help="host:port of the router.")] = "",
    task: Annotated[str, typer.Option(help="Task type; empty: recognized.")] = "",
    max_tokens: Annotated[int, typer.Option(help="Most answer tokens; 0: the policy's.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Explain a routing decision step by step; no model runs.

    Example:

      tandem decide "计算三笔分期的实际年化利率"
    """
    where = find_address(address)
    request = build_request(question, task=task, max_tokens=max_tokens)
    try:
        response = RouterClient(where, read_key()).decide(request, deadline_ms)
    except grpc.RpcError as error:
        fail(error, where)
    if as_json:
        print(MessageToJson(response, preserving_proto_field_name=True, ensure_ascii=False))
        return
    console = Console()
    steps = Table("step", "verdict", "reason", "evidence", title="Steps", title_justify="left")
    for step in response.steps:
        reason = decision_pb2.Reason.Name(step.reason).removeprefix("REASON_")
        seen = {**step.inputs, "value": step.value, "threshold": step.threshold}
        evidence = ", ".join(f"{key}={value}" for key, value in seen.items() if value)
        steps.add_row(step.step, step.verdict, reason if step.reason else "", evidence)
    console.print(steps)
    plan = Table("level", "target", "cap ms", title="Plan", title_justify="left")
    for attempt in response.plan:
        plan.add_row(
            decision_pb2.Level.Name(attempt.level).removeprefix("LEVEL_"),
            decision_pb2.Target.Name(attempt.target).removeprefix("TARGET_"),
            str(attempt.cap_ms),
        )
    plan.add_row("L4", "FALLBACK", "")
    console.print(plan)
    decision = response.decision
    console.print(
        f"[bold]{target_of(decision)}[/] {level_of(decision)} · {reason_of(decision)} · "
        f"task {decision.task_type} · policy {decision.policy_version}",
        highlight=False,
    )
