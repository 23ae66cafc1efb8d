"""The order of a session's reports: none twice, none from the past."""

from __future__ import annotations

from collections import deque
from typing import Final

from steerline_contract.errors import InvalidValueError
from steerline_contract.playback import PlaybackReport, ReportCause

# Sequence numbers remembered, to tell a replayed report that never came from one that did.
REMEMBERED: Final = 1024


class OutOfOrderError(InvalidValueError):
    """A sequence number or time stamp seen already, or gone by."""


class Order:
    """Checks one session's reports. A rejected report leaves no trace here."""

    def __init__(self) -> None:
        self._last_sequence = 0
        self._last_timestamp_ms = 0
        self._seen: set[int] = set()
        self._seen_order: deque[int] = deque()

    def check(self, report: PlaybackReport) -> None:
        """Raises OutOfOrderError. Replayed reports are late by nature, but come once as well."""
        number = report.sequence_number
        if report.cause is ReportCause.REPLAYED:
            if number in self._seen:
                raise OutOfOrderError("sequence_number", number, "one that was not stored before")
            return
        if number <= self._last_sequence:
            raise OutOfOrderError("sequence_number", number, f"more than {self._last_sequence}, the last one")
        if report.timestamp_ms < self._last_timestamp_ms:
            raise OutOfOrderError(
                "timestamp_ms",
                report.timestamp_ms,
                f"{self._last_timestamp_ms} (the last report's) or later: time does not run backwards",
            )

    def accept(self, report: PlaybackReport) -> None:
        """Remembers a report that was checked."""
        if report.cause is not ReportCause.REPLAYED:
            self._last_sequence = report.sequence_number
            self._last_timestamp_ms = report.timestamp_ms
        self._seen.add(report.sequence_number)
        self._seen_order.append(report.sequence_number)
        if len(self._seen_order) > REMEMBERED:
            self._seen.discard(self._seen_order.popleft())
