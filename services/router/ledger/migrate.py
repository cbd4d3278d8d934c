"""Brings a database to the newest shape, by alembic, from the scripts in this package."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

SCRIPTS = Path(__file__).parent / "migrations"
# Any fixed number will do: routers that start together take turns by it.
_LOCK = 7_263_001


def upgrade(connection: Connection) -> None:
    """Runs what is missing, inside the caller's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    command.upgrade(_config(connection), "head")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
