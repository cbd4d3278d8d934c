"""Entry point of the router process: `python -m services.router.main --config FILE`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from services.common.errors import ConfigInvalid
from services.common.rpc.process import run_service
from services.common.settings import load_settings
from services.router.app import RouterApp
from services.router.config import RouterSettings


def main() -> int:
    """Reads the settings and serves until told to stop."""
    parser = argparse.ArgumentParser(description="Tandem router")
    parser.add_argument("--config", type=Path, default=Path("config/router.yaml"))
    arguments = parser.parse_args()
    try:
        settings = load_settings(RouterSettings, arguments.config, "TANDEM_ROUTER")
    except ConfigInvalid as error:
        print(error.message, file=sys.stderr)  # noqa: T201  # no logger before settings
        return 2
    return run_service(lambda: RouterApp(settings), settings.server, settings.telemetry, "router")


if __name__ == "__main__":
    sys.exit(main())
