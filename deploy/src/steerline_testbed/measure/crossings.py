"""How long from the report that crosses the threshold to the switches, and to the first packet moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steerline_testbed.measure.lab import Say, lab_settings, open_lab, spread

PORT = 7001


def measure(count: int, flows: int, seed: int, gap_s: float, say: Say) -> dict[str, Any]:
    """`count` crossings with `flows` downloads running. Times in ms, from the report's arrival."""
    settings = lab_settings("buffer-threshold", flows, seed)
    with open_lab(settings, say) as lab:
        out = lab.network.directory / "crossings.jsonl"
        lab.pace(rate=500, size=100, until_s=24 * 3600)
        lab.receive("viewer1", [PORT])
        _, socket = lab.reporter("viewer1")
        worker = lab.worker("crossings", socket, PORT, count, gap_s, out)
        lab.wait(worker, lambda: f"{_lines(out)} of {count} crossings")
        return {"flows": flows, "seed": seed} | summarise(out.read_text())


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def summarise(text: str) -> dict[str, Any]:
    """Figures of the worker's record."""
    rows = [json.loads(line) for line in text.splitlines()]
    done = [row for row in rows if not row.get("missed")]
    moved = [row for row in done if row["from_line"] != row["to_line"]]
    return {
        "crossings": len(rows),
        "missed": len(rows) - len(done),
        "changed_line": len(moved),
        "to_barrier_ms": spread([row["barrier_ms"] for row in done]),
        "to_first_packet_ms": spread(
            [row["first_packet_ms"] for row in moved if row["first_packet_ms"] is not None]
        ),
    }
