"""What processes hold: memory, files, threads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Held:
    """Of one process at one moment."""

    rss_mb: float
    fds: int
    threads: int

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def held_by(pid: int) -> Held:
    """As the kernel tells it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Held(
        rss_mb=int(fields["VmRSS"].split()[0]) / 1024.0,
        fds=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(fields["Threads"]),
    )
