"""Opens a page in a real headless browser: a picture, and a failure where its console has an error.

`python scripts/screenshot.py PAGE PICTURE [--dark]`; needs Chromium (Debian: `chromium`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
          "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND")  # fmt: skip


def main() -> None:
    """Exit code 1: no browser, no picture, or something in the console."""
    page, picture = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(_BROWSERS)} is on PATH")
    dark = ["--blink-settings=preferredColorScheme=0"] if "--dark" in sys.argv else []
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, *_FLAGS, *dark, f"--user-data-dir={profile}", "--window-size=1100,5200",
             f"--screenshot={picture}", page.as_uri()],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    if said or done.returncode or not picture.exists():
        raise SystemExit("\n".join(said) or done.stderr)
    print(f"{picture}: nothing in the console, no network")


if __name__ == "__main__":
    main()
