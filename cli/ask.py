"""`tandem ask`: one question, streamed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import grpc
import typer
from google.protobuf.json_format import MessageToJson
from rich.console import Console

from cli.client import RouterClient, build_request, fail, find_address, read_key
from cli.render import show_attempts, show_outcome
from tandem.router.v1 import router_pb2


@dataclass(slots=True)
class Answer:
    """What a stream brought.

    Attributes:
        text: The text that stands at the end; withdrawn text is not in it.
    """

    request_id: str = ""
    text: str = ""
    outcome: router_pb2.Outcome = field(default_factory=router_pb2.Outcome)
    whole: bool = False


def follow(events: Iterable[router_pb2.RouteStreamResponse], *, echo: bool) -> Answer:
    """Takes in a stream, writing text as it comes where `echo`. Raises grpc.RpcError."""
    answer = Answer()
    for event in events:
        kind = event.WhichOneof("event")
        if kind == "decision":
            answer.request_id = event.decision.request_id
        elif kind == "chunk":
            answer.text += event.chunk.text
            if echo:
                sys.stdout.write(event.chunk.text)
                sys.stdout.flush()
        elif kind == "superseded":
            answer.text = ""
            if echo:
                sys.stdout.write("\n[withdrawn]\n")
        elif kind == "final":
            answer.outcome, answer.whole = event.final.outcome, True
    if echo:
        sys.stdout.write("\n")
    return answer


def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads standard input.")],
    deadline_ms: Annotated[int, typer.Option(min=1, help="Whole budget, milliseconds.")] = 8_000,
    address: Annotated[str, typer.Option(help="host:port of the router.")] = "",
    system: Annotated[str, typer.Option(help="Instructions.")] = "",
    task: Annotated[str, typer.Option(help="Task type; empty: recognized.")] = "",
    session: Annotated[str, typer.Option(help="Session id.")] = "",
    max_tokens: Annotated[int, typer.Option(help="Most answer tokens; 0: the policy's.")] = 0,
    labels: Annotated[str, typer.Option(help="Answer with one of these, comma-separated.")] = "",
    schema: Annotated[str, typer.Option(help="JSON schema that the answer fits.")] = "",
    edge_only: Annotated[bool, typer.Option(help="Never leave the trust zone.")] = False,
    hold: Annotated[bool, typer.Option(help="Show nothing before the whole answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, no stream.")] = False,
) -> None:
    """Ask one question and stream the answer, its decision and its timings.

    Examples:

      tandem ask "What is the capital of Japan?"

      tandem ask --json --deadline-ms 3000 "Prove that the square root of 2 is irrational"

      echo "refund please" | tandem ask - --labels refund,complaint,other
    """
    text = sys.stdin.read() if question == "-" else question
    where = find_address(address)
    request = build_request(
        text,
        system=system,
        task=task,
        session=session,
        max_tokens=max_tokens,
        labels=labels,
        schema=schema,
        edge_only=edge_only,
        hold=hold,
    )
    try:
        events = RouterClient(where, read_key()).stream(request, deadline_ms)
        answer = follow(events, echo=not as_json)
    except grpc.RpcError as error:
        fail(error, where)
    if as_json:
        response = router_pb2.RouteResponse(
            request_id=answer.request_id, text=answer.text, outcome=answer.outcome
        )
        print(MessageToJson(response, preserving_proto_field_name=True, ensure_ascii=False))
        return
    console = Console(stderr=True)
    show_outcome(console, answer.outcome)
    show_attempts(console, answer.outcome)
