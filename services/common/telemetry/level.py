"""The level of the log, changed while a process runs."""

from __future__ import annotations

import logging

import structlog

_log = structlog.get_logger()


class LogLevel:
    """Everything, or what the settings say; a signal goes from the one to the other.

    Args:
        configured: The settings' level.
    """

    def __init__(self, configured: str) -> None:
        self._configured = logging.getLevelNamesMapping()[configured.upper()]
        self._everything = False

    def toggle(self) -> None:
        """Called on SIGUSR1: what changes is told at any level."""
        self._everything = not self._everything
        level = logging.DEBUG if self._everything else self._configured
        # Loggers are made anew at each call (`cache_logger_on_first_use`), so all follow.
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
        # Critical, so that it is told at any level.
        _log.critical("log_level", now=logging.getLevelName(level).lower())
