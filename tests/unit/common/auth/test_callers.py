"""Keys and roles follow their file; a bad file leaves the old one in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.auth.callers import Authenticator
from services.common.auth.config import Callers
from services.common.auth.keys import hash_key, make_key
from services.common.auth.watch import CHECK_S, WatchedFile
from services.common.errors import ConfigInvalid, PermissionDenied, TandemError, Unauthenticated
from services.common.settings import load_settings, validate

METHOD = "/tandem.router.v1.RouterService/Route"
OTHER = "/tandem.router.v1.RouterService/Feedback"
FIRST, SECOND = make_key("ci"), make_key("ci")


class Clock:
    """Monotonic seconds by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def content(*shown: str, **more: Any) -> dict[str, Any]:
    hashes = [hash_key(key) for key in shown]
    return {"keys": [{"id": "ci", "tenant": "acme", "hashes": hashes}] if shown else [], **more}


def put(file: Path, data: object) -> None:
    partial = file.with_suffix(".partial")
    partial.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    partial.replace(file)


def watch(file: Path, clock: Clock) -> Authenticator[Callers]:
    return Authenticator(WatchedFile(file, lambda path: load_settings(Callers, path, "NO"), clock))


def works(callers: Authenticator[Callers], key: str, method: str = METHOD) -> bool:
    try:
        callers.authenticate(method, {"authorization": f"Bearer {key}"})
    except Unauthenticated:
        return False
    return True


def test_rotation_and_revocation_need_no_restart(tmp_path: Path) -> None:
    file, clock = tmp_path / "callers.yaml", Clock()
    put(file, content(FIRST))
    callers = watch(file, clock)
    steps = [(content(FIRST, SECOND), True, True), (content(SECOND), False, True)]
    assert works(callers, FIRST)
    assert not works(callers, SECOND)
    for data, first, second in [*steps, (content(), False, False)]:
        put(file, data)
        clock.now += CHECK_S
        assert (works(callers, FIRST), works(callers, SECOND)) == (first, second)


def test_a_swapped_symlink_counts(tmp_path: Path) -> None:
    for name, key in (("one", FIRST), ("two", SECOND)):
        (tmp_path / name).mkdir()
        put(tmp_path / name / "callers.yaml", content(key))
    (tmp_path / "data").symlink_to("one")
    clock = Clock()
    callers = watch(tmp_path / "data" / "callers.yaml", clock)
    assert works(callers, FIRST)
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").replace(tmp_path / "data")
    clock.now += CHECK_S
    assert (works(callers, FIRST), works(callers, SECOND)) == (False, True)


@pytest.mark.parametrize("bad", ["a: [", "keys: 1", "- a list", None])
def test_a_bad_file_leaves_the_old_one_in_force(
    tmp_path: Path, bad: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    file, clock = tmp_path / "callers.yaml", Clock()
    put(file, content(FIRST))
    callers = watch(file, clock)
    if bad is None:
        file.unlink()
    else:
        put(file, bad)
    for _ in range(3):
        clock.now += CHECK_S
        assert works(callers, FIRST)
    assert "".join(capfd.readouterr()).count("file_reload_failed") == 1
    put(file, content(SECOND))
    clock.now += CHECK_S
    assert works(callers, SECOND)


def test_a_bad_file_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        watch(tmp_path / "absent.yaml", Clock())


def test_roles_permit_methods(tmp_path: Path) -> None:
    file = tmp_path / "callers.yaml"
    for methods, allowed in (
        (["*"], True),
        (["/tandem.router.v1.RouterService/*"], True),
        ([METHOD], True),
        ([OTHER], False),
        ([], False),
    ):
        put(file, content(FIRST, roles={"caller": methods}))
        callers = watch(file, Clock())
        if allowed:
            assert works(callers, FIRST)
        else:
            with pytest.raises(PermissionDenied):
                works(callers, FIRST)


def test_one_text_for_everybody_who_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "callers.yaml"
    put(file, content(FIRST))
    callers = watch(file, Clock())
    texts = set()
    for value in ("", "Bearer", "Bearer x", f"Bearer {SECOND}", f"Basic {FIRST}", "Bearer a.b.c"):
        with pytest.raises(TandemError) as caught:
            callers.authenticate(METHOD, {"authorization": value})
        texts.add((caught.value.code, caught.value.reason, caught.value.message))
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("issuer", "words"),
    [
        ({}, "jwks_file or jwks_url"),
        ({"jwks_file": "a", "jwks_url": "https://b/"}, "one of them"),
        ({"jwks_url": "http://login.example.com/"}, "https"),
        ({"jwks_url": "ftp://login.example.com/"}, "https"),
        ({"jwks_file": "a", "algorithms": ["HS256"]}, "algorithms"),
        ({"jwks_file": "a", "algorithms": ["none"]}, "algorithms"),
        ({"jwks_file": "a", "algorithms": []}, "algorithms"),
        ({"jwks_file": "a", "leeway_s": 301}, "leeway_s"),
        ({"jwks_file": "a", "roles": ["king"]}, "roles"),
    ],
)
def test_bad_issuers(issuer: dict[str, Any], words: str) -> None:
    data = {"issuers": [{"issuer": "i", "audience": "a", **issuer}]}
    with pytest.raises(ConfigInvalid, match=words):
        validate(Callers, data, "callers.yaml")
