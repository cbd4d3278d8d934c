"""Starts the stand-in upstream: `python -m cli.standin.main --model-dir DIR`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from cli.standin.bodies import BodyLog
from cli.standin.edge_generator import EdgeGenerator
from cli.standin.http import make_app
from services.common.errors import ConfigInvalid, TandemError
from services.common.identity import read_secret
from services.common.rpc.process import READY_FILE_ENV
from services.common.settings import TelemetrySettings
from services.common.telemetry.setup import configure_logs
from services.edge_worker.kit.manifest import read_manifest

_log = structlog.get_logger()
KEY_ENV = "TANDEM_STANDIN_KEY"
_MIN_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    model_dir: Path
    listen: str
    key: str
    log_bodies: Path | None
    threads: int


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until a signal; returns 2 where something about the start is wrong."""
    configure_logs("standin", TelemetrySettings())
    try:
        asyncio.run(_serve(_options(argv)))
    except TandemError as error:
        _log.error("start_failed", reason=error.reason, error=error.message)
        return 2
    return 0


def _options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="tandem-standin", description=__doc__)
    parser.add_argument("--model-dir", type=Path, default="models/smollm2-135m-instruct/fp32")
    parser.add_argument("--listen", default="127.0.0.1:50060", help="host:port; port 0: any")
    parser.add_argument("--api-key-file", default="", help=f"else the variable {KEY_ENV}")
    parser.add_argument("--log-bodies", type=Path, help="append each request body to this file")
    parser.add_argument("--threads", type=int, default=0, help="0: the CPU quota")
    given = parser.parse_args(argv)
    key = read_secret(given.api_key_file, KEY_ENV, "--api-key-file")
    if len(key) < _MIN_KEY_CHARS:
        raise ConfigInvalid(f"--api-key-file / {KEY_ENV}: needs {_MIN_KEY_CHARS} characters")
    return Options(given.model_dir, given.listen, key, given.log_bodies, given.threads)


async def _serve(options: Options) -> None:
    listener = _listen(options.listen)
    generator = await EdgeGenerator.start(options.model_dir, options.threads)
    manifest = read_manifest(options.model_dir)
    model = f"standin/{manifest.name}-{manifest.recipe}"
    app = make_app(generator, model, options.key, BodyLog(options.log_bodies))
    # Streams end when their client leaves; at the end of the process none is waited for.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=2, lifespan="off"
    )
    _announce(listener, model)
    try:
        await _Server(config).serve(sockets=[listener])
    finally:
        await generator.stop()


class _Server(uvicorn.Server):
    """uvicorn raises the signal again when it has stopped, which would skip our own end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        return socket.create_server((host, int(port)), backlog=256)
    except (OSError, ValueError) as exc:
        raise ConfigInvalid(f"--listen: cannot listen on {address}") from exc


def _announce(listener: socket.socket, model: str) -> None:
    host, port = listener.getsockname()[:2]
    address = f"{host}:{port}"
    _log.info("ready", address=address, model=model, standin=True, pid=os.getpid())
    target = os.environ.get(READY_FILE_ENV)
    if target:
        partial = Path(target).with_suffix(".partial")
        partial.write_text(json.dumps({"name": "standin", "address": address, "model": model}))
        partial.replace(target)


if __name__ == "__main__":
    sys.exit(main())
