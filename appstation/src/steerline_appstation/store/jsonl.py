"""Records as JSON lines in a file: for experiments that read them afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.store.records import AnyRecord


class JsonLines:
    """Appends to one file, a batch at a time. A line is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
        """See `Sink.write`. Keeps everything, whatever the retention."""
        del now_s
        text = "".join(record.model_dump_json() + "\n" for record in records).encode()
        try:
            await asyncio.to_thread(self._append, text)
        except OSError as error:
            raise StoreUnavailableError(f"{self._path}: {error.strerror or error}") from error

    def _append(self, text: bytes) -> None:
        with self._path.open("ab", buffering=0) as file:
            before = file.seek(0, 2)
            try:
                while text:
                    text = text[file.write(text) :]
            except OSError:
                # A full disk shall not leave half a line; it is written again.
                with contextlib.suppress(OSError):
                    file.truncate(before)
                raise
