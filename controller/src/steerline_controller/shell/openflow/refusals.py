"""A switch that is turned away comes back each second: why is said once a minute."""

from __future__ import annotations

import threading
import time
from typing import Final

import structlog

LOG = structlog.get_logger()

_QUIET_S: Final = 60.0
_REMEMBERED: Final = 1000


class Refusals:
    """Remembers what was said. Any thread may call."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def say(self, peer: str, why: str) -> None:
        """Logs a refusal, unless the same was logged just now."""
        now = time.monotonic()
        with self._lock:
            if now - self._said.get((peer, why), -_QUIET_S) < _QUIET_S:
                return
            if len(self._said) > _REMEMBERED:
                self._said.clear()
            self._said[peer, why] = now
        LOG.error("switch refused", peer=peer, why=why)
