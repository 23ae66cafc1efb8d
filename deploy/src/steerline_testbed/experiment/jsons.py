"""JSON from outside, with types a checker can follow."""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, cast


def mapping(value: object) -> dict[str, Any] | None:
    """The value as an object, None when it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def parse_mapping(text: str | bytes) -> dict[str, Any] | None:
    """The object that a text is, None when it is anything else or torn."""
    try:
        return mapping(loads(text))
    except (JSONDecodeError, UnicodeDecodeError):
        return None


def number(value: object, otherwise: float = 0.0) -> float:
    """A number from a record, `otherwise` where there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file; a torn last line (its writer died) is left out, as is a missing file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            found = parse_mapping(line) if line.endswith("\n") else None
            if found is not None:
                yield found
