"""Settings of the router process."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.common.breaker import BreakerSettings
from services.common.settings import ServerSettings, Settings, TelemetrySettings, TlsSettings


class RequestLimits(Settings):
    """Bounds of one request; they fit into the server's message limit."""

    max_messages: int = Field(default=256, ge=1)
    max_text_chars: int = Field(default=200_000, ge=1)
    """Of one text field."""
    max_total_chars: int = Field(default=1_000_000, ge=1)
    """Of all text fields together."""
    max_tools: int = Field(default=64, ge=0)
    max_snippets: int = Field(default=64, ge=0)
    max_output_tokens: int = Field(default=8_192, ge=1)


class EdgeLink(Settings):
    """How the router reaches the edge worker."""

    address: str = "127.0.0.1:50052"
    report_interval_ms: int = Field(default=500, ge=100)
    stale_after_ms: int = Field(default=3_000, ge=500)
    """Without a report for so long the edge counts as down."""
    tls: TlsSettings = TlsSettings()


class CloudLink(Settings):
    """How the router reaches the cloud proxy."""

    address: str = "127.0.0.1:50053"
    secret_file: str = ""
    secret_env: str = "TANDEM_SERVICE_SECRET"  # noqa: S105  # the name of a variable
    tls: TlsSettings = TlsSettings()


class RouterBreakers(Settings):
    """When a border is closed for a while."""

    edge: BreakerSettings = BreakerSettings(failure_share=0.5)
    cloud: BreakerSettings = BreakerSettings(failure_share=0.2, cool_s=30.0)


class CacheSettings(Settings):
    """Where stored answers are. What may be stored is the policy's."""

    enabled: bool = True
    exact_url: str = "memory"
    """memory, or redis://, rediss:// or unix://."""
    vectors_url: str = "memory"
    """memory, or postgresql://USER@HOST/DATABASE with pgvector."""
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    """Of the exact cache in process."""
    max_rows: int = Field(default=20_000, ge=1)
    """Of the semantic cache, in process or in PostgreSQL."""
    timeout_ms: int = Field(default=100, ge=1)
    """Longest wait for a store; then it is a miss."""


class LoadSettings(Settings):
    """What happens when many calls are under way at once."""

    shed_from: int = Field(default=200, ge=1)
    """From so many calls on, low-priority channels get a stored or a canned answer."""
    low_priority_channels: tuple[str, ...] = ()


class Candidate(Settings):
    """A second policy that is tried beside the one in force."""

    policy_file: Path | None = None
    """None: there is none."""
    thresholds_file: Path | None = None
    ab_share: float = Field(default=0.0, ge=0, le=1)
    """Share of sessions that it answers (A/B); 0: it only records what it would do (dry run)."""


class RouterSettings(Settings):
    """All settings of the router."""

    server: ServerSettings = ServerSettings(listen="127.0.0.1:50051")
    telemetry: TelemetrySettings = TelemetrySettings()
    edge: EdgeLink = EdgeLink()
    cloud: CloudLink = CloudLink()
    limits: RequestLimits = RequestLimits()
    pii_entities: bool = False
    """Names, organizations and addresses count as personal data too; see `cloud.yaml`."""
    breakers: RouterBreakers = RouterBreakers()
    embedder_dir: str = "models/use-multilingual-v3"
    """What `make embedder` has built; without it requests that need a complexity score go to
    the strong model, marked ROUTER_DEGRADED, and there is no semantic cache."""
    complexity_dir: str = ""
    """What `tandem train complexity` wrote; empty: the model that is shipped."""
    cache: CacheSettings = CacheSettings()
    policy_file: Path = Path("config/policy.yaml")
    thresholds_file: Path | None = Path("config/thresholds.yaml")
    """Judged tasks, bands and calibrations; reloaded together with the policy."""
    candidate: Candidate = Candidate()
    load: LoadSettings = LoadSettings()
    policy_poll_ms: int = Field(default=1_000, ge=50)
    """Time between two looks at the policy file, which is reloaded while serving."""
    tenants_file: Path = Path("config/tenants.yaml")
    ledger_url: str = "sqlite:///build/ledger.db"
    """sqlite:///PATH or postgresql://USER@HOST/DATABASE."""
    ledger_spool_dir: Path | None = None
    """Where rows wait while the store is down, for this process alone. None: beside the
    SQLite file, or build/ledger-spool."""
    ledger_spool_max_bytes: int = Field(default=256 * 1024 * 1024, ge=1024)
    ledger_retention_days: float = Field(default=90.0, gt=0)
