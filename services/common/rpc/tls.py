"""TLS between our services, from mounted files; with client certificates it is mutual."""

from __future__ import annotations

from pathlib import Path

import grpc

from services.common.errors import ConfigInvalid
from services.common.settings import TlsSettings


def server_credentials(tls: TlsSettings) -> grpc.ServerCredentials | None:
    """What a server shows and asks for; None: it listens in clear.

    Raises:
        ConfigInvalid: A file cannot be read.
    """
    if not tls.cert_file:
        return None
    pair = (_read(tls.key_file), _read(tls.cert_file))
    return grpc.ssl_server_credentials(
        [pair],
        root_certificates=_read(tls.ca_file) if tls.ca_file else None,
        require_client_auth=tls.require_client_cert,
    )


def channel_credentials(tls: TlsSettings) -> grpc.ChannelCredentials | None:
    """How a caller checks the server, and what it shows; None: it calls in clear.

    Raises:
        ConfigInvalid: A file cannot be read.
    """
    if not tls.ca_file:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca_file),
        private_key=_read(tls.key_file) if tls.key_file else None,
        certificate_chain=_read(tls.cert_file) if tls.cert_file else None,
    )


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as exc:
        raise ConfigInvalid(f"tls: {file} cannot be read") from exc
