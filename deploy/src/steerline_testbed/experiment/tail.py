"""Follows a growing JSON-lines file without reading anything twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steerline_testbed.experiment.jsons import parse_mapping


class Tail:
    """New objects of a file since the last look. The file may not be there yet; a torn line waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """The objects that were added since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [found for line in lines if (found := parse_mapping(line)) is not None]
