"""Certificates for tests, by the openssl command."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates for 127.0.0.1; all files lie in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.ca = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl(*_new_key(self.ca, name), "-x509", "-addext", "basicConstraints=critical,CA:TRUE")

    def issue(self, name: str) -> Pair:
        """A certificate that serves and calls."""
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        _openssl(
            *_new_key(pair, name),
            *("-x509", "-CA", str(self.ca.cert), "-CAkey", str(self.ca.key)),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
        )
        return pair


def _new_key(pair: Pair, name: str) -> tuple[str, ...]:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    files = ("-keyout", str(pair.key), "-out", str(pair.cert))
    return ("req", *curve, *files, "-days", "2", "-subj", f"/CN={name}")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
