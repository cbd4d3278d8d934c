"""`tandem up`: the whole system on this machine."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.client import EXIT_FAILED, UP_FILE
from cli.launch import LaunchOptions, launch, write_addresses
from cli.system import System
from services.common.errors import TandemError

_WATCH_S = 0.5


def up(
    config_dir: Annotated[Path, typer.Option(help="Folder of the YAML files.")] = Path("config"),
    models_root: Annotated[
        Path, typer.Option(envvar="TANDEM_MODELS_DIR", help="Folder of the built models.")
    ] = Path("models"),
    router_port: Annotated[int, typer.Option(min=0, max=65_535)] = 50_051,
    edge_port: Annotated[int, typer.Option(min=0, max=65_535)] = 50_052,
    cloud_port: Annotated[int, typer.Option(min=0, max=65_535)] = 50_053,
    free_ports: Annotated[bool, typer.Option(help="Take free ports for all.")] = False,
) -> None:
    """Start router, edge worker and cloud proxy, and say when they are ready.

    Tiers that `cloud.yaml` marks `standin: true` are served by a stand-in upstream,
    which is started too. Ctrl-C drains and stops everything. Logs: build/run/*.log.

    Examples:

      tandem up

      tandem up --free-ports
    """
    console = Console()
    system = System(UP_FILE.parent)
    options = LaunchOptions(
        config_dir,
        models_root,
        *((0, 0, 0) if free_ports else (router_port, edge_port, cloud_port)),
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        address = launch(system, options, lambda line: console.print(f"  {line}", highlight=False))
        write_addresses(system, UP_FILE)
        console.print(f"[bold green]ready[/]: router at {address}", highlight=False)
        console.print('Ask with: tandem ask "What is the capital of Japan?"', highlight=False)
        _watch(system, stop, console)
    except TandemError as error:
        console.print(f"[red]{error.message}[/]", highlight=False, markup=True)
        raise typer.Exit(EXIT_FAILED) from error
    finally:
        console.print("draining …", highlight=False)
        UP_FILE.unlink(missing_ok=True)
        system.stop()
        console.print("stopped", highlight=False)


def _watch(system: System, stop: threading.Event, console: Console) -> None:
    """Says when a process ends; ends itself only with the router."""
    reported: set[str] = set()
    while not stop.wait(_WATCH_S):
        for child in system.children.values():
            if child.alive() or child.name in reported:
                continue
            reported.add(child.name)
            code = child.process.returncode
            console.print(f"[red]{child.name} ended with code {code}[/]; see {child.log_file}")
            if child.name == "router":
                return
