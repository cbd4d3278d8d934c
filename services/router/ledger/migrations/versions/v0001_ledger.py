"""The tables of requests and of feedback."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Makes them. SQLite does this outside a transaction, hence what is there may stay."""
    op.create_table(
        "requests",
        sa.Column("row_id", sa.String(32), primary_key=True),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("channel", sa.Text),
        sa.Column("session_hash", sa.String(16)),
        sa.Column("task_type", sa.Text),
        sa.Column("intent", sa.Text),
        sa.Column("ended", sa.Text, nullable=False),
        sa.Column("level", sa.String(8)),
        sa.Column("target", sa.String(16)),
        sa.Column("reason", sa.String(32)),
        sa.Column("fallback_type", sa.String(16)),
        sa.Column("attempts", _JSON, nullable=False),
        sa.Column("pii_kinds", _JSON),
        sa.Column("input_chars", sa.Integer),
        sa.Column("policy_version", sa.Text),
        sa.Column("model_id", sa.Text),
        sa.Column("prompt_id", sa.Text),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("input_tokens_trimmed", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cost_micro_usd", sa.BigInteger),
        sa.Column("usage_estimated", sa.Boolean),
        sa.Column("budget_ms", sa.Double),
        sa.Column("budget_elapsed_before_ms", sa.Double),
        sa.Column("total_ms", sa.Double),
        sa.Column("ttft_ms", sa.Double),
        sa.Column("stage_ms", _JSON),
        sa.Column("degraded", sa.Boolean),
        sa.Column("partial", sa.Boolean),
        sa.Column("arm", sa.Text),
        sa.Column("candidate", _JSON),
        sa.Column("complexity", sa.Double),
        sa.Column("confidence_raw", sa.Double),
        sa.Column("confidence", sa.Double),
        sa.Column("bands", _JSON),
        sa.Column("cache_outcome", sa.Text),
        sa.Column("validator_outcome", sa.Text),
        sa.Column("cloud_ok", sa.Boolean),
        sa.Column("shadow", _JSON),
        if_not_exists=True,
    )
    op.create_table(
        "feedback",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("request_id", sa.String(128), primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("corrected_text", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index("requests_at", "requests", ["at", "row_id"], if_not_exists=True)
    op.create_index(
        "requests_tenant_request", "requests", ["tenant", "request_id"], if_not_exists=True
    )
    op.create_index("feedback_at", "feedback", ["at"], if_not_exists=True)


def downgrade() -> None:
    """Drops them, with all that they hold."""
    op.drop_table("feedback")
    op.drop_table("requests")
