"""Settings: file, environment over it, errors that name the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.errors import ConfigInvalid
from services.common.settings import Settings, load_settings


class Inner(Settings):
    """A group."""

    name: str = "default"
    count: int = 1


class Outer(Settings):
    """The whole."""

    inner: Inner = Inner()


def load(tmp_path: Path, text: str = "") -> Outer:
    file = tmp_path / "outer.yaml"
    file.write_text(text)
    return load_settings(Outer, file, "TEST_OUTER")


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OUTER__INNER__COUNT", "3")
    loaded = load(tmp_path, "inner: {name: file, count: 2}")
    assert (loaded.inner.name, loaded.inner.count) == ("file", 3)


def test_an_empty_variable_is_an_empty_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OUTER__INNER__NAME", "")
    assert load(tmp_path, "inner: {name: file}").inner.name == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inner: {colour: 1}", "inner.colour"),
        ("inner: {count: many}", "inner.count"),
        ("- a list", "mapping"),
        ("inner: {name: 'secret", "not valid YAML"),
    ],
)
def test_errors_name_the_setting(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as caught:
        load(tmp_path, text)
    assert "secret" not in caught.value.message


def test_a_wrong_group_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_OUTER__INNER", "3")
    with pytest.raises(ConfigInvalid, match="inner"):
        load(tmp_path)
