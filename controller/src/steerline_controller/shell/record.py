"""The record: every announcement as one JSON line. A full disk costs lines of it, never steering."""

from __future__ import annotations

import json
import threading
from io import RawIOBase
from pathlib import Path
from queue import Full, Queue

import structlog

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import Decision, NetworkAdvice

LOG = structlog.get_logger()

_CAPACITY = 100_000


def flow_parts(flow: FiveTuple) -> dict[str, object]:
    """A five-tuple as JSON's own types."""
    return {
        "protocol": flow.protocol,
        "client_address": str(flow.client),
        "client_port": flow.client_port,
        "server_address": str(flow.server),
        "server_port": flow.server_port,
    }


def decision_parts(value: Decision) -> dict[str, object]:
    """A decision as JSON's own types; `flow` is null where a session or line is meant."""
    return {
        "type": "decision",
        "time_s": round(value.time_s, 6),
        "kind": value.kind.name,
        "site": value.site,
        "session_id": value.session_id,
        "flow": flow_parts(value.flow) if value.flow else None,
        "from_line": value.from_line,
        "to_line": value.to_line,
        "reason": value.reason,
        "strategy": value.strategy,
    }


def advice_parts(value: NetworkAdvice, time_s: float) -> dict[str, object]:
    """An advice as JSON's own types."""
    return {
        "type": "advice",
        "time_s": round(time_s, 6),
        "session_id": value.session_id,
        "sustainable_bps": value.sustainable_bps,
        "reason": value.reason,
    }


class Record:
    """Writes in a thread of its own. Raises OSError when the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered: a line that a full disk refused must not come back, in part, with the next.
        self._file: RawIOBase = path.open("ab", buffering=0)
        self._queue: Queue[tuple[float, Decision | NetworkAdvice] | None] = Queue(_CAPACITY)
        self._lost = 0
        self._broken_line = False
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)
        self._thread.start()

    def put(self, now: float, value: Decision | NetworkAdvice) -> None:
        """Takes one announcement. Never blocks: when writing falls far behind, lines are left out."""
        try:
            self._queue.put_nowait((now, value))
        except Full:
            self._say_lost("the disk is too slow")

    def close(self) -> None:
        """Writes what waits, for at most two seconds."""
        try:
            self._queue.put_nowait(None)
        except Full:
            return
        self._thread.join(2.0)
        if not self._thread.is_alive():
            self._file.close()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._write(_line(*item))
            except OSError as error:
                self._say_lost(error.strerror or str(error))

    def _write(self, line: bytes) -> None:
        if self._broken_line:
            line = b"\n" + line
        written = 0
        while written < len(line):
            done = self._file.write(line[written:]) or 0
            written += done
            # Room for half a line: whoever reads skips it, and the next begins on its own.
            self._broken_line = written < len(line) and (written > 0 or self._broken_line)
        self._broken_line = False

    def _say_lost(self, why: str) -> None:
        self._lost += 1
        if self._lost == 1:
            LOG.error("the record loses lines; steering goes on", file=str(self._path), why=why)


def _line(now: float, value: Decision | NetworkAdvice) -> bytes:
    parts = decision_parts(value) if isinstance(value, Decision) else advice_parts(value, now)
    return json.dumps(parts).encode() + b"\n"
