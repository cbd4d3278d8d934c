"""Run by alembic: applies migrations on the connection that `migrate.upgrade` hands over.

For `alembic revision --autogenerate` see docs/adr/0010-ledger.md.
"""

from __future__ import annotations

from alembic import context

from services.router.ledger.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # SQLite changes tables by copying them.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
