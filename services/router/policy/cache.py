"""The `cache` section of the policy: what may be stored, for how long, and what counts as alike."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.common.settings import Settings
from services.common.similarity.settings import Similarity


class TaskCache(Settings):
    """One task's rules."""

    exact: bool = True
    semantic: bool = False
    """Only where the router has an embedder."""
    shareable: bool = False
    """Answers may serve other sessions of the tenant, where a request has no history, slots or
    snippets. Else a stored answer serves only the session that got it."""
    ttl_s: float = Field(default=3_600.0, gt=0)
    stale_s: float = Field(default=86_400.0, ge=0)
    """So long after its time an answer may still serve as a last resort, marked degraded."""
    similarity: Similarity = Similarity()
    verifier_dir: Path | None = None
    """What `tandem train cache-verifier` wrote for this task; None: cosine and guards."""


class EscalationMemoryPolicy(Settings):
    """A repeat or doubt of an escalated question gets the stored cloud answer."""

    enabled: bool = True
    ttl_s: float = Field(default=900.0, gt=0)
    max_per_session: int = Field(default=8, ge=1, le=64)


class CachePolicy(Settings):
    """All of it. Tasks without a row take `default`."""

    tasks: dict[str, TaskCache] = Field(default_factory=dict)
    default: TaskCache = TaskCache()
    wait_share: float = Field(default=0.5, ge=0, le=1)
    """Share of its remaining budget that a request waits for an equal one under way."""
    memory: EscalationMemoryPolicy = EscalationMemoryPolicy()

    def task(self, task_type: str) -> TaskCache:
        """The rules of a task type."""
        return self.tasks.get(task_type, self.default)
