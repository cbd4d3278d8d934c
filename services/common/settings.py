"""Settings: a YAML file, overridden by environment variables, checked by types.

Precedence: environment, then file, then defaults. Every error names the setting
and what is allowed, and stops the process at start.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from services.common.errors import ConfigInvalid

Model = TypeVar("Model", bound="Settings")


class Settings(BaseModel):
    """Base of all settings: frozen, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TelemetrySettings(Settings):
    """Where spans and metrics go, and how logs look."""

    otlp_endpoint: str = ""
    """host:port of an OTLP/gRPC receiver; empty: nothing is exported."""
    trace_ratio: float = Field(default=1.0, ge=0, le=1)
    """Share of root calls that are traced; children follow their parent."""
    metrics_listen: str = ""
    """host:port in plain HTTP with /metrics for Prometheus, /livez and /readyz; loopback unless
    told otherwise, port 0 takes a free one; empty: none."""
    log_level: str = "info"
    log_format: str = "auto"
    """json, console, or auto: console on a terminal, else json."""


class TlsSettings(Settings):
    """TLS between services, from mounted files (PEM), read at the start.

    A server needs `cert_file` and `key_file`, a caller `ca_file`; for mutual TLS both name
    all three, and the server sets `require_client_cert`.
    """

    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    """Certificates that sign the other side's."""
    require_client_cert: bool = False
    """Whether a server turns away callers without a certificate signed by `ca_file`."""

    @model_validator(mode="after")
    def _fits_together(self) -> TlsSettings:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file go together")
        if self.require_client_cert and not (self.cert_file and self.ca_file):
            raise ValueError("require_client_cert needs cert_file, key_file and ca_file")
        return self


class ServerSettings(Settings):
    """How a process listens."""

    listen: str = "127.0.0.1:0"
    """host:port; loopback by default, port 0 takes a free one."""
    max_message_bytes: int = 4 * 1024 * 1024
    max_concurrent_calls: int = 512
    max_connection_age_ms: int = 300_000
    """After this a connection is closed gently, so that callers notice new pods."""
    max_connection_age_grace_ms: int = 150_000
    """How long its calls may still run: longer than the longest deadline."""
    leave_ms: int = Field(default=0, ge=0)
    """How long after SIGTERM calls are still served, while health says no. As long as
    `max_connection_age_ms` and a tenth, every caller has been sent away gently by then; a
    server that just stops fails the calls that are on their way to it."""
    drain_ms: int = 10_000
    """How long calls may go on after that."""
    tls: TlsSettings = TlsSettings()
    """Without files the server listens in clear."""


def load_settings(kind: type[Model], path: Path | None, env_prefix: str) -> Model:
    """Reads `kind` from a YAML file and the environment.

    Environment names are the prefix and the path joined by `__`, such as
    `TANDEM_EDGE__SERVER__LISTEN`; values are read as YAML.

    Raises:
        ConfigInvalid: Unreadable file, unknown or wrong setting.
    """
    data = read_yaml(path) if path is not None else {}
    for name, value in sorted(os.environ.items()):
        if name.startswith(env_prefix + "__"):
            _put(data, name[len(env_prefix) + 2 :].lower().split("__"), value)
    return validate(kind, data, str(path or env_prefix))


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads one YAML mapping.

    Raises:
        ConfigInvalid: The file cannot be read, is no YAML, or is no mapping.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigInvalid(f"{path}: cannot be read: {exc}") from exc
    except yaml.YAMLError as exc:
        # The parser's own text quotes the file, which may hold what no log should show.
        mark = getattr(exc, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigInvalid(f"{path}: not valid YAML{where}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigInvalid(f"{path}: must hold a mapping at the top")
    return data


def validate(kind: type[Model], data: dict[str, Any], source: str) -> Model:
    """Checks `data` against `kind`.

    Raises:
        ConfigInvalid: Lists every setting that is wrong, and what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as exc:
        lines = [
            f"{source}: {'.'.join(str(part) for part in error['loc'])}: {error['msg']}"
            for error in exc.errors(include_input=False, include_url=False)
        ]
        raise ConfigInvalid("\n".join(lines)) from exc


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    for part in path[:-1]:
        data = data.setdefault(part, {})
        if not isinstance(data, dict):
            raise ConfigInvalid(f"environment: {'.'.join(path)}: {part} is no group of settings")
    try:
        # An empty value is an empty text; YAML would read it as null.
        data[path[-1]] = yaml.safe_load(value) if value else ""
    except yaml.YAMLError as exc:
        raise ConfigInvalid(f"environment: {'.'.join(path)}: not valid YAML") from exc
