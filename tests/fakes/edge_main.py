"""The edge worker over a fake runtime: `python -m tests.fakes.edge_main --config FILE`.

The same process as `services.edge_worker.main` in all but the model. The fake is
set by the environment, e.g. `TANDEM_FAKE_EDGE__DECODE_MS=20`; see `BurnSettings`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from services.common.settings import load_settings
from services.edge_worker.main import main as edge_main
from tests.fakes.burn_runtime import BurnSettings, burn_model

ENV_PREFIX = "TANDEM_FAKE_EDGE"


def main(argv: Sequence[str] | None = None) -> int:
    """As `services.edge_worker.main.main`."""
    settings = load_settings(BurnSettings, None, ENV_PREFIX)
    return edge_main(argv, lambda _: burn_model(settings))


if __name__ == "__main__":
    sys.exit(main())
