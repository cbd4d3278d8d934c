"""Which cells there are: component, fault, and the stage of the requests that it hits."""

from __future__ import annotations

from dataclasses import dataclass

STAGES = ("before", "prefill", "stream")
PROCESSES = ("edge", "cloud", "upstream", "redis", "postgres")
OF_PROCESSES = ("killed", "restarted", "paused", "stopped")
OF_HOPS = ("slow", "stalled", "cut", "refusing", "lying")
CLOCKS = ("router", "cloud")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        component: What is hit: a process, the network, the disk, the clock.
        fault: killed · restarted (SIGTERM and anew) · paused (SIGSTOP for 0.7 s) · stopped
            (SIGSTOP until the callers have ended) · slow (200 ms for each read) · stalled
            (bytes held) · cut (connections torn once) · refusing · lying (garbled bytes, or
            malformed answers of the upstream), and the special ones.
        stage: before the request, during prefill or connecting, or in mid-stream.
        healthy: A permitted tier and a way to it are well, so that the target counts.
    """

    component: str
    fault: str
    stage: str
    healthy: bool = True

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        return f"{self.component}.{self.fault}.{self.stage}"


def main_cells() -> list[Cell]:
    """Processes and hops of the system on one machine, and its disk."""
    found = [
        Cell(component, fault, stage)
        for component in PROCESSES
        for fault in (*OF_PROCESSES, *OF_HOPS)
        for stage in STAGES
    ]
    # Nothing stands before the router: while the way to it is shut nobody can answer.
    found += [
        Cell("caller-router", fault, stage, healthy=fault in ("slow",))
        for fault in OF_HOPS
        for stage in STAGES
    ]
    found += [
        Cell("disk", fault, stage) for fault in ("full", "full and no store") for stage in STAGES
    ]
    return found


def router_cells() -> list[Cell]:
    """The router itself: two of them behind one name, the first is hit."""
    return [
        # A caller whose router stopped has no other way until its own deadline.
        Cell("router", fault, stage, healthy=fault != "stopped")
        for fault in OF_PROCESSES
        for stage in STAGES
    ]


def clock_cells() -> list[Cell]:
    """The wall clock of one process jumps; the monotonic one does not, as on a real host."""
    return [
        Cell(f"clock of {name}", fault, stage)
        for name in CLOCKS
        for fault in ("an hour ahead", "an hour back")
        for stage in STAGES
    ]


def loss_cells() -> list[Cell]:
    """Edge and cloud proxy in a network namespace of their own, both behind one bad wire."""
    return [
        Cell("network", fault, stage, healthy=fault == "2 % loss")
        for fault in ("2 % loss", "10 % loss", "cut off")
        for stage in STAGES
    ]


# component, fault, why there is no such cell.
IMPOSSIBLE: tuple[tuple[str, str, str], ...] = (
    ("redis, postgres", "refusing by status", "covered by `refusing`: the port refuses"),
    ("disk", "paused, cut, refusing", "a disk is either full or failing; full is what we can make"),
    ("clock", "slow, stalled, cut", "a clock can only jump; drift is a small jump"),
    ("router", "slow, stalled, cut, refusing, lying", "under the component caller-router"),
)
