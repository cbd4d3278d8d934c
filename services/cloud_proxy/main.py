"""Starts the cloud proxy: `python -m services.cloud_proxy.main --config FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from services.cloud_proxy.app import CloudApp
from services.cloud_proxy.config import ENV_PREFIX, CloudSettings
from services.common.errors import ConfigInvalid
from services.common.rpc.process import run_service
from services.common.settings import load_settings


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM; returns 2 where the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="tandem-cloud-proxy", description=__doc__)
    parser.add_argument("--config", type=Path, help="YAML file; see config/cloud.yaml")
    arguments = parser.parse_args(argv)
    try:
        settings = load_settings(CloudSettings, arguments.config, ENV_PREFIX)
    except ConfigInvalid as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - logs are not set up yet
        return 2
    return run_service(
        lambda: CloudApp(settings), settings.server, settings.telemetry, CloudApp.name
    )


if __name__ == "__main__":
    sys.exit(main())
