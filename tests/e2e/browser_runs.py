"""A short run with a real browser, and what must be true of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from short_runs import Run, perform

SHORT = {"flows": 8, "duration_s": 35.0, "traffic_start_s": 8.0, "rule": "on", "overrides": {}}


def perform_browser(folder: Path, player: str) -> Run:
    return perform(folder, strategy="buffer-threshold", player=player, screenshot_at_s=[20.0], **SHORT)


def check_steered(run: Run) -> None:
    """Steered by its own session and flow, reported as it was, and nothing of it is left."""
    assert run.summary["browser"]["page"] == "dashjs"
    assert run.summary["browser"]["version"]
    heard = run.video["reporting"]
    assert heard["reports"] >= 15
    assert heard["share_of_seconds"] > 0.5
    assert heard["first_report_s"] < run.video["play"]["start_up_delay_s"] + 2
    assert heard["mean_difference_s"] < 0.25
    (session_id,) = heard["session_ids"]
    steered = [
        row
        for row in lines(run.folder / "raw/decisions.jsonl")
        if row["kind"] == "STEER" and row["session_id"] == session_id
    ]
    assert steered
    known = {
        tuple(flow.values())
        for row in lines(run.folder / "raw/reports.jsonl")
        if row["kind"] == "session" and row["session_id"] == session_id
        for flow in row["flows"]
    }
    first = steered[0]["flow"]
    assert (first["client_address"], first["server_address"]) == ("198.18.1.11", "198.19.0.1")
    assert (first["protocol"], first["server_port"]) == (6, 80)
    assert tuple(first.values()) in known
    assert run.video["play"]["played_share"] > 0.9 or run.video["play"]["stall_count"]
    (picture,) = (run.folder / "raw").glob("player1-020s.jpg")
    assert picture.stat().st_size > 10_000
    assert not left_of(run.summary["run_id"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def left_of(run_id: str) -> list[str]:
    """Processes whose command names this run's folder."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if f"/{run_id}/" in text:
            found.append(text)
    return found
