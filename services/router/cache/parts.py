"""Opens the cache from its settings."""

from __future__ import annotations

import time

import structlog

from services.common.embedding.runner import TextEmbedder
from services.common.errors import ConfigInvalid
from services.router.cache.checked_embedder import CheckedEmbedder
from services.router.cache.desk import CacheDesk
from services.router.cache.memory import MemoryKeyValues, MemoryVectors
from services.router.cache.pgvector_store import PgVectors
from services.router.cache.redis_store import RedisKeyValues
from services.router.cache.semantic import SemanticCache
from services.router.cache.store import KeyValueStore, VectorStore
from services.router.config import CacheSettings

_log = structlog.get_logger()
_REDIS = ("redis://", "rediss://", "unix://")
_POSTGRES = ("postgresql://", "postgres://")
_IN_PROCESS = "memory"


def open_cache(settings: CacheSettings, embedder: TextEmbedder | None) -> CacheDesk | None:
    """The cache, None where it is off. Connects when used.

    Raises:
        ConfigInvalid: A URL names no store.
    """
    if not settings.enabled:
        return None
    exact, vectors = _open_exact(settings), _open_vectors(settings)
    checked = _checked(embedder)
    semantic = SemanticCache(vectors, checked) if checked else None
    return CacheDesk(exact, semantic, time.time)


def _checked(embedder: TextEmbedder | None) -> CheckedEmbedder | None:
    """The embedder, where there is one and it gives what can be vectors."""
    if embedder is None:
        return None
    made = CheckedEmbedder(embedder)
    wrong = made.check()
    if wrong:
        _log.error("no_semantic_cache", why=f"the embedder gives rubbish: {wrong}")
        return None
    return made


def _open_exact(settings: CacheSettings) -> KeyValueStore:
    if settings.exact_url == _IN_PROCESS:
        return MemoryKeyValues(settings.max_bytes)
    if settings.exact_url.startswith(_REDIS):
        return RedisKeyValues(settings.exact_url, settings.timeout_ms)
    raise ConfigInvalid("cache.exact_url: must be memory, redis://, rediss:// or unix://")


def _open_vectors(settings: CacheSettings) -> VectorStore:
    if settings.vectors_url == _IN_PROCESS:
        return MemoryVectors(settings.max_rows)
    if settings.vectors_url.startswith(_POSTGRES):
        return PgVectors(settings.vectors_url, settings.timeout_ms, settings.max_rows)
    raise ConfigInvalid("cache.vectors_url: must be memory or a postgresql:// URL")
