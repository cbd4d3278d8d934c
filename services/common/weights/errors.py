"""Everything that can go wrong with a model's files, mapped by the app at start."""

from __future__ import annotations


class ModelError(Exception):
    """Base of the kit's errors; the message tells an operator what to do."""


class SourceUnavailable(ModelError):
    """The published weights cannot be obtained: no network, no such package or file."""


class ChecksumMismatch(ModelError):
    """A file is not the one that was expected, byte for byte."""


class DiskFull(ModelError):
    """There is no room for the download or the built model."""


class BuildLocked(ModelError):
    """Another process builds the same model and did not finish in time."""


class UnsupportedModel(ModelError):
    """The file is sound, but of an architecture or form the builder does not know."""


class CorruptModel(ModelError):
    """A model file is damaged, truncated or contradicts its manifest."""


class ModelNotBuilt(ModelError):
    """There is no built model in the directory."""


class ProviderUnavailable(ModelError):
    """An execution provider was asked for and the session did not get it."""
