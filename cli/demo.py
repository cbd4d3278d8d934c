"""`tandem demo`: four questions, each answered from the right place."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import grpc
import typer
from rich.console import Console
from rich.table import Table

from cli.ask import Answer, follow
from cli.client import EXIT_FAILED, RouterClient, build_request, fail
from cli.launch import LaunchOptions, launch
from cli.render import level_of, reason_of, show_outcome, target_of
from cli.system import System
from services.common.errors import TandemError

_DEADLINE_MS = 60_000
_PHONE = "138 0013 8000"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and where it should be answered."""

    title: str
    text: str
    target: str
    max_tokens: int = 60


QUESTIONS = (
    Question("short, English", "What is the capital of Japan?", "EDGE"),
    Question("short, Chinese", "你好，今天过得怎么样？", "EDGE"),
    Question(
        "a phone number",
        f"My number is {_PHONE}. Prove to me that you will keep it private.",
        "EDGE",
    ),
    Question(
        "hard",
        "A loan of 10,000 is paid back in 12 instalments of 900. "
        "Calculate the effective annual rate, step by step.",
        "CLOUD_LARGE",
        80,
    ),
)


def demo(
    config_dir: Annotated[Path, typer.Option(help="Folder of the YAML files.")] = Path("config"),
    models_root: Annotated[
        Path, typer.Option(envvar="TANDEM_MODELS_DIR", help="Folder of the built models.")
    ] = Path("models"),
) -> None:
    """Start the system on free ports, ask four questions, show where each was answered, stop.

    Example:

      tandem demo
    """
    console = Console()
    with tempfile.TemporaryDirectory(prefix="tandem-demo-") as folder:
        bodies = Path(folder) / "upstream-bodies.jsonl"
        system = System(Path("build/demo"))
        ledger = f"sqlite:///{system.run_dir / 'ledger.db'}"
        options = LaunchOptions(config_dir, models_root, 0, 0, 0, bodies, ledger)
        try:
            console.print("[bold]Starting[/]")
            address = launch(system, options, lambda line: console.print(f"  {line}"))
            answers = [_ask(console, address, question) for question in QUESTIONS]
        except TandemError as error:
            console.print(error.message, style="red", markup=False)
            raise typer.Exit(EXIT_FAILED) from error
        finally:
            system.stop()
        leaked = _show_upstream(console, bodies)
    _show_table(console, answers)
    wrong = [q.title for q, a in zip(QUESTIONS, answers, strict=True) if _target(a) != q.target]
    if wrong or leaked:
        console.print(f"[red]not answered where expected: {', '.join(wrong) or 'leak'}[/]")
        raise typer.Exit(EXIT_FAILED)


def _ask(console: Console, address: str, question: Question) -> Answer:
    console.print(f"\n[bold]{question.title}[/]: {question.text}", highlight=False)
    request = build_request(question.text, max_tokens=question.max_tokens)
    try:
        answer = follow(RouterClient(address).stream(request, _DEADLINE_MS), echo=True)
    except grpc.RpcError as error:
        fail(error, address)
    show_outcome(console, answer.outcome)
    return answer


def _show_upstream(console: Console, bodies: Path) -> bool:
    """Searches what the upstream received for the phone number; True where it is found."""
    lines = bodies.read_text(encoding="utf-8").splitlines() if bodies.exists() else []
    digits = _PHONE.replace(" ", "")
    found = any(_PHONE in line or digits in line.replace(" ", "") for line in lines)
    asked = sum(len(json.loads(line)["messages"]) for line in lines)
    console.print(
        f"\nThe upstream received {len(lines)} request(s) with {asked} message(s); "
        + ("[red]the phone number is among them[/]" if found else "the phone number is in none."),
        highlight=False,
    )
    return found


def _show_table(console: Console, answers: list[Answer]) -> None:
    columns = ("question", "answered by", "level", "why", "TTFT ms", "total ms", "tokens")
    table = Table(*columns, box=None)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        outcome = answer.outcome
        table.add_row(
            question.title,
            _target(answer) + (" *" if outcome.standin else ""),
            level_of(outcome.decision),
            reason_of(outcome.decision),
            f"{outcome.timings.ttft_ms:.0f}",
            f"{outcome.timings.total_ms:.0f}",
            f"{outcome.usage.input_tokens} in, {outcome.usage.output_tokens} out",
        )
    console.print(table)
    if any(answer.outcome.standin for answer in answers):
        console.print("[dim]* by the stand-in, not by a real provider[/]")


def _target(answer: Answer) -> str:
    return target_of(answer.outcome.decision)
