"""The cache opens from its settings; without an embedder the exact one works alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.errors import ConfigInvalid
from services.router.cache.parts import open_cache
from services.router.config import CacheSettings
from services.router.minds import open_minds


def test_off_is_none() -> None:
    assert open_cache(CacheSettings(enabled=False), None) is None


@pytest.mark.parametrize("damaged", [False, True])
async def test_without_a_whole_embedder_there_is_the_exact_cache(
    tmp_path: Path, damaged: bool
) -> None:
    if damaged:
        (tmp_path / "manifest.json").write_text("{}")
    desk = open_cache(CacheSettings(), open_minds(str(tmp_path), "").embedder)
    assert desk is not None
    assert desk.semantic is None
    await desk.stop()


@pytest.mark.parametrize("field", ["exact_url", "vectors_url"])
def test_an_unknown_store_is_refused_without_repeating_its_url(field: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"cache.{field}") as refused:
        open_cache(CacheSettings.model_validate({field: "mysql://user:secret@host"}), None)
    assert "secret" not in str(refused.value)


def test_a_sqlite_url_holds_no_vectors() -> None:
    with pytest.raises(ConfigInvalid):
        open_cache(CacheSettings(vectors_url="sqlite:///x.db"), None)
