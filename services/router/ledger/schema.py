"""The ledger's tables. A change here needs a migration beside it in `migrations/versions`."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA = MetaData()
_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

REQUESTS = Table(
    "requests",
    METADATA,
    Column("row_id", String(32), primary_key=True),
    Column("request_id", String(128), nullable=False),
    Column("at", Double, nullable=False),  # seconds since the epoch
    Column("tenant", String(128), nullable=False),
    Column("channel", Text),
    Column("session_hash", String(16)),
    Column("task_type", Text),
    Column("intent", Text),
    Column("ended", Text, nullable=False),
    Column("level", String(8)),
    Column("target", String(16)),
    Column("reason", String(32)),
    Column("fallback_type", String(16)),
    Column("attempts", _JSON, nullable=False),
    Column("pii_kinds", _JSON),
    Column("input_chars", Integer),
    Column("policy_version", Text),
    Column("model_id", Text),
    Column("prompt_id", Text),
    Column("input_tokens", BigInteger),
    Column("input_tokens_trimmed", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_micro_usd", BigInteger),
    Column("usage_estimated", Boolean),
    Column("budget_ms", Double),
    Column("budget_elapsed_before_ms", Double),
    Column("total_ms", Double),
    Column("ttft_ms", Double),
    Column("stage_ms", _JSON),
    Column("degraded", Boolean),
    Column("partial", Boolean),
    # Filled by later stages of the router; null where a request did not pass them.
    Column("arm", Text),
    Column("candidate", _JSON),
    Column("complexity", Double),
    Column("confidence_raw", Double),
    Column("confidence", Double),
    Column("bands", _JSON),
    Column("cache_outcome", Text),
    Column("validator_outcome", Text),
    Column("cloud_ok", Boolean),
    Column("shadow", _JSON),
)
Index("requests_at", REQUESTS.c.at, REQUESTS.c.row_id)
Index("requests_tenant_request", REQUESTS.c.tenant, REQUESTS.c.request_id)

# No foreign key: a verdict may arrive while its row is still in a queue.
FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("tenant", String(128), primary_key=True),
    Column("request_id", String(128), primary_key=True),
    Column("at", Double, nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("corrected_text", Text, nullable=False),
)
Index("feedback_at", FEEDBACK.c.at)
COLUMNS = frozenset(column.name for column in REQUESTS.columns)
