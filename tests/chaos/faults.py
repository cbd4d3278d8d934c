"""Faults: how each is put in force and taken back. Blocking."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.cells import OF_HOPS, Cell
from tests.chaos.world import WELL, Act, World

PAUSE_S = 0.7
_LYING: dict[str, dict[str, Any]] = {
    "before": {"content_type": "text/html"},
    "prefill": {"bad_json_after": 0},
    "stream": {"bad_json_after": 6},
}


def nothing() -> None:
    """Nothing to take back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`apply` at the cell's stage, `clear` once all callers have ended."""

    apply: Act
    clear: Act = nothing


Maker = Callable[[World, Cell], Fault]


def fault_of(world: World, cell: Cell, clocks: Path | None = None) -> Fault:
    """The fault of a cell."""
    if cell.component.startswith("clock of"):
        return _clock(cell, clocks or Path())
    if cell.component == "network":
        return _loss(cell)
    if cell.component == "disk":
        return _disk(world, cell)
    if cell.component == "upstream" and cell.fault == "lying":
        lying = WELL | _LYING[cell.stage]
        return Fault(lambda: world.upstream.default(**lying), lambda: _well(world))
    if cell.fault in OF_HOPS:
        hop = cell.component.removeprefix("caller-")
        return Fault(
            lambda: world.relays.become(hop, cell.fault), lambda: world.relays.become(hop, "pass")
        )
    if cell.component in ("redis", "postgres"):
        return _store(world, cell)
    return _process(world, cell)


def _well(world: World) -> None:
    world.upstream.default(**WELL)


def _process(world: World, cell: Cell) -> Fault:
    name = cell.component

    def restart() -> None:
        world.kill(name, signal.SIGTERM)
        world.again(name)

    def pause() -> None:
        os.kill(world.pid(name), signal.SIGSTOP)
        time.sleep(PAUSE_S)
        os.kill(world.pid(name), signal.SIGCONT)

    return {
        "killed": Fault(lambda: world.kill(name), lambda: world.again(name)),
        "restarted": Fault(restart),
        "paused": Fault(pause),
        "stopped": Fault(
            lambda: os.kill(world.pid(name), signal.SIGSTOP),
            lambda: os.kill(world.pid(name), signal.SIGCONT),
        ),
    }[cell.fault]


def _store(world: World, cell: Cell) -> Fault:
    store = world.redis if cell.component == "redis" else world.postgres

    def restart() -> None:
        store.stop()
        store.start()

    def pause() -> None:
        store.pause()
        time.sleep(PAUSE_S)
        store.resume()

    return {
        "killed": Fault(store.stop, store.start),
        "restarted": Fault(restart),
        "paused": Fault(pause),
        "stopped": Fault(store.pause, store.resume),
    }[cell.fault]


def _disk(world: World, cell: Cell) -> Fault:
    filler = world.spool / "filler"

    def fill() -> None:
        if "no store" in cell.fault:
            world.relays.become("postgres", "refusing")
        block = bytes(65_536)
        with filler.open("wb", buffering=0) as file:
            for size in (65_536, 4_096):
                try:
                    while True:
                        file.write(block[:size])
                except OSError:
                    pass

    def clear() -> None:
        filler.unlink(missing_ok=True)
        world.relays.become("postgres", "pass")

    return Fault(fill, clear)


def _clock(cell: Cell, folder: Path) -> Fault:
    file = folder / cell.component.removeprefix("clock of ")
    seconds = 3_600 if "ahead" in cell.fault else -3_600

    def put(offset: int) -> None:
        partial = file.with_suffix(".partial")
        partial.write_text(f"{offset:+d}")
        partial.replace(file)

    return Fault(lambda: put(seconds), lambda: put(0))


def _loss(cell: Cell) -> Fault:
    percent = 100 if cell.fault == "cut off" else int(cell.fault.split()[0])

    def apply() -> None:
        rule = f"numgen random mod 100 < {percent} drop"
        for chain in ("input", "output"):
            _in_namespace(
                f"nft add table inet chaos; nft add chain inet chaos {chain} "
                f"'{{ type filter hook {chain} priority 0; }}'; "
                f"nft add rule inet chaos {chain} {rule}"
            )

    return Fault(apply, lambda: _in_namespace("nft flush ruleset"))


NAMESPACE = "tandem-chaos"
NEAR, FAR = "10.213.7.1", "10.213.7.2"


def _in_namespace(command: str) -> None:
    subprocess.run(["ip", "netns", "exec", NAMESPACE, "sh", "-c", command], check=True)


def make_namespace() -> None:
    """A namespace with one wire to this one."""
    remove_namespace()
    for command in (
        f"ip netns add {NAMESPACE}",
        f"ip link add tdm0 type veth peer name tdm1 netns {NAMESPACE}",
        f"ip addr add {NEAR}/30 dev tdm0",
        "ip link set tdm0 up",
        f"ip -n {NAMESPACE} addr add {FAR}/30 dev tdm1",
        f"ip -n {NAMESPACE} link set tdm1 up",
        f"ip -n {NAMESPACE} link set lo up",
    ):
        subprocess.run(command.split(), check=True)


def remove_namespace() -> None:
    """Takes it away, and the wire with it."""
    for command in (f"ip netns del {NAMESPACE}", "ip link del tdm0"):
        subprocess.run(command.split(), check=False, capture_output=True)
