"""Starts the edge worker: `python -m services.edge_worker.main --config config/edge.yaml`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from services.common.errors import ConfigInvalid
from services.common.rpc.process import run_service
from services.common.settings import load_settings
from services.edge_worker.app import EdgeApp, LoadModel
from services.edge_worker.config import EdgeSettings
from services.edge_worker.model import load_onnx

ENV_PREFIX = "TANDEM_EDGE"


def main(argv: Sequence[str] | None = None, load_model: LoadModel = load_onnx) -> int:
    """Runs until SIGTERM; returns the exit code, 2 for a wrong setting."""
    parser = argparse.ArgumentParser(prog="tandem-edge", description="The Tandem edge worker.")
    parser.add_argument("--config", type=Path, help="YAML file; see config/edge.yaml")
    path: Path | None = parser.parse_args(argv).config
    try:
        settings = load_settings(EdgeSettings, path, ENV_PREFIX)
    except ConfigInvalid as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    app = EdgeApp(settings, load_model)
    return run_service(lambda: app, settings.server, settings.telemetry, app.name)


if __name__ == "__main__":
    sys.exit(main())
