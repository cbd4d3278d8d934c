"""Builds every Kubernetes overlay and component, and fails on anything that is wrong with it.

`kubectl kustomize` builds, kubernetes-validate checks against the oldest and the newest
Kubernetes that we support, checkov checks policies of manifests and Dockerfiles, hadolint
lints Dockerfiles. What is accepted stands in deploy/accepted.yaml, each with its reason; an
entry that no longer matches anything is a finding too. Nothing here asks a cluster, and after
checkov is installed nothing asks a network.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import yaml

ROOT = Path(__file__).resolve().parent.parent
K8S, DOCKER = ROOT / "deploy" / "k8s", ROOT / "deploy" / "docker"
ACCEPTED = ROOT / "deploy" / "accepted.yaml"
OUT = ROOT / "build" / "manifests"
CHECKOV, CHECKOV_LOCK = ROOT / "build" / "checkov", ROOT / "requirements" / "manifests.lock"
# The oldest has `sleep` in preStop without a feature gate; the newest has a schema here.
VERSIONS = ("1.32", "1.37")
# Components that no overlay takes as shipped are built on top of this one.
CARRIER = "prod"

Manifest = dict[str, Any]


@dataclass(slots=True)
class Accepted:
    """What deploy/accepted.yaml lets pass, and which of it was met."""

    kinds: dict[tuple[str, str], str]
    checks: list[dict[str, str]]
    met: set[str] = field(default_factory=set)

    def kind(self, api: str, kind: str) -> bool:
        """Whether a kind may lack a schema."""
        self.met.add(f"{api}/{kind}")
        return (api, kind) in self.kinds

    def check(self, check: str, resource: str) -> bool:
        """Whether a failed policy check is explained."""
        for entry in self.checks:
            if entry["check"] == check and fnmatch(resource, entry["resource"]):
                self.met.add(f"{entry['check']} {entry['resource']}")
                return True
        return False

    def stale(self) -> Iterator[str]:
        """Entries that nothing met."""
        known = [f"{api}/{kind}" for api, kind in self.kinds]
        known += [f"{entry['check']} {entry['resource']}" for entry in self.checks]
        for entry in known:
            if entry not in self.met:
                yield f"{ACCEPTED.name}: {entry}: nothing needs this any more"


def read_accepted(path: Path = ACCEPTED) -> Accepted:
    """Reads the accepted findings.

    Raises:
        SystemExit: An entry has no reason.
    """
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for entry in (*data["kinds"], *data["checks"]):
        if not entry.get("reason", "").strip():
            raise SystemExit(f"{path.name}: {entry}: needs a reason")
    kinds = {(entry["api"], entry["kind"]): entry["reason"] for entry in data["kinds"]}
    return Accepted(kinds, data["checks"])


def targets() -> dict[str, Path]:
    """Folders to build by name: overlays, and the carrier with each component it lacks."""
    found = {path.parent.name: path.parent for path in K8S.glob("overlays/*/kustomization.yaml")}
    carried = yaml.safe_load((found[CARRIER] / "kustomization.yaml").read_text(encoding="utf-8"))
    taken = {Path(component).name for component in carried["components"]}
    for component in sorted((K8S / "components").iterdir()):
        if component.name not in taken:
            found[f"{CARRIER}+{component.name}"] = _variant(component.name)
    return found


def build(folder: Path) -> str:
    """What `kubectl apply -k` would send.

    Raises:
        SystemExit: kustomize refuses the folder.
    """
    done = _run(["kubectl", "kustomize", str(folder)])
    # Deprecated fields are told on stderr, with exit code 0.
    if done.returncode != 0 or done.stderr.strip():
        raise SystemExit(f"{folder.name}: {done.stderr.strip()}")
    return done.stdout


def parse(text: str) -> list[Manifest]:
    """The objects of a built overlay."""
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def schema_findings(name: str, manifests: Sequence[Manifest], accepted: Accepted) -> list[str]:
    """What the schemas of each version say; a kind without a schema is a finding."""
    return [
        f"{name}: {problem}"
        for manifest in manifests
        for version in VERSIONS
        for problem in _validate(manifest, version, accepted)
    ]


def _validate(manifest: Manifest, version: str, accepted: Accepted) -> Iterator[str]:
    what = f"{manifest['kind']}/{manifest['metadata']['name']} ({version})"
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{what}: {'.'.join(str(part) for part in error.path)}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        if not accepted.kind(manifest["apiVersion"], manifest["kind"]):
            yield f"{what}: {error.message}"
    except (
        kubernetes_validate.InvalidSchemaError,
        kubernetes_validate.VersionNotSupportedError,
    ) as error:
        yield f"{what}: {error.message}"


def policy_findings(framework: str, folder: Path, accepted: Accepted) -> list[str]:
    """What checkov holds against the files in `folder`."""
    command = [str(_checkov()), "--directory", str(folder), "--framework", framework]
    command += ["--skip-download", "--quiet", "--compact", "--output", "json"]
    done = _run(command)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return [f"checkov: {done.stderr.strip() or done.stdout.strip()}"]
    summary = report.get("summary", {})
    if not summary.get("passed") or summary.get("parsing_errors"):
        return [f"checkov: not every file of {framework} was checked: {summary}"]
    return [
        f"{failed['file_path']}: {failed['resource']}: {failed['check_id']}: {failed['check_name']}"
        for failed in report["results"]["failed_checks"]
        if not accepted.check(failed["check_id"], failed["resource"])
    ]


def dockerfile_findings() -> list[str]:
    """What hadolint says, warnings and hints included."""
    files = sorted(str(path.relative_to(ROOT)) for path in DOCKER.glob("*.Dockerfile"))
    done = _run(["hadolint", "--failure-threshold", "style", "--no-color", *files])
    if done.returncode == 0:
        return []
    return (done.stdout + done.stderr).strip().splitlines()


def main() -> int:
    """Returns 1 where something was found."""
    accepted = read_accepted()
    shutil.rmtree(OUT, ignore_errors=True)
    findings: list[str] = []
    for name, folder in sorted(targets().items()):
        text = build(folder)
        manifests = parse(text)
        (OUT / f"{name}.yaml").write_text(text, encoding="utf-8")
        found = schema_findings(name, manifests, accepted)
        findings += found
        print(f"{name:18} {len(manifests):3} objects, valid on {', '.join(VERSIONS)}: {not found}")
    findings += policy_findings("kubernetes", OUT, accepted)
    findings += policy_findings("dockerfile", DOCKER, accepted)
    findings += dockerfile_findings()
    findings += accepted.stale()
    print(*findings, f"{len(findings)} findings", sep="\n")
    return 1 if findings else 0


def _variant(component: str) -> Path:
    folder = OUT / "variants" / f"{CARRIER}+{component}"
    folder.mkdir(parents=True, exist_ok=True)
    up = "../" * len(folder.relative_to(ROOT).parts) + "deploy/k8s"
    text = yaml.safe_dump(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": "tandem",
            "resources": [f"{up}/overlays/{CARRIER}"],
            "components": [f"{up}/components/{component}"],
        }
    )
    (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
    return folder


def _checkov() -> Path:
    """checkov in an environment of its own, made when its lock file changes."""
    stamp = CHECKOV / ".lock"
    digest = hashlib.sha256(CHECKOV_LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
        print("== installing checkov into build/checkov")
        venv.create(CHECKOV, clear=True, with_pip=True)
        command = [str(CHECKOV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        command += ["--disable-pip-version-check", "--require-hashes", "-r", str(CHECKOV_LOCK)]
        subprocess.run(command, check=True)
        stamp.write_text(digest, encoding="ascii")
    return CHECKOV / "bin" / "checkov"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
