"""The main job on a real network: the same video starves on one line, and does not when it is steered."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as parquet
import pytest
from short_runs import Run

pytestmark = pytest.mark.network

SCHEMA = Path(__file__).parents[2] / "contract/schema/summary.schema.json"


def test_all_on_one_line_starves(starved: Run) -> None:
    """With twelve downloads beside it on one line, the video stalls and the other lines stay idle."""
    assert starved.video["play"]["stall_count"] >= 1
    used = starved.summary["lines"]["used_bps"]
    assert used["line1"] > 0.9 * 10e6
    assert max(used[name] for name in used if name != "line1") < 0.1e6


def test_steered_it_does_not(rescued: Run) -> None:
    """The same video, the same downloads: no stall, every line used, 480p throughout."""
    assert rescued.video["play"]["stall_count"] == 0
    assert rescued.video["play"]["share_at_480p_of_wall"] > 0.95
    assert min(rescued.summary["lines"]["used_bps"].values()) > 0.8 * 10e6


def test_behind_a_home_router_it_does_not_either(behind_nat: Run) -> None:
    """The five-tuple that the agent sees is not the one the switch sees, and the session is found."""
    assert behind_nat.video["play"]["stall_count"] == 0
    steered = [row for row in decisions(behind_nat) if row["kind"] == "steer" and row["session_id"]]
    assert steered
    assert all("198.18.2.1" in row["flow"] for row in steered)


def test_others_lose_little(starved: Run, rescued: Run) -> None:
    """The downloads get more than on one line, and none is starved for the video."""
    got = rescued.summary["downloads"]
    assert got["mean_bps"] > 2 * starved.summary["downloads"]["mean_bps"]
    assert got["slowest_bps"] > 0.3 * got["median_bps"]


def test_every_decision_has_its_reason(rescued: Run) -> None:
    """Decisions are written with what was moved, from where, where to, and why."""
    rows = decisions(rescued)
    assert rows
    assert all(row["reason"] and row["strategy"] for row in rows)
    assert any(row["session_id"] and row["kind"] == "steer" for row in rows)


def test_the_summary_is_what_its_schema_says(starved: Run, rescued: Run, behind_nat: Run) -> None:
    """summary.json on disk is valid, complete, and equal to what was returned."""
    schema = json.loads(SCHEMA.read_text())
    for run in (starved, rescued, behind_nat):
        on_disk = json.loads((run.folder / "summary.json").read_text())
        jsonschema.validate(on_disk, schema)
        assert on_disk["state"] == "complete"
        assert on_disk["self_assertion"]["passed"]
        seen = on_disk["congestion_control"]["seen"]
        # The twelve downloads, and whatever the browsing customer has open at that moment.
        assert set(seen) == {"cubic"}
        assert seen["cubic"] >= 12


def test_series_open_elsewhere_and_agree(rescued: Run) -> None:
    """Every table is there as CSV and as Parquet, with as many rows."""
    tables = sorted((rescued.folder / "series").glob("*.csv"))
    assert {path.stem for path in tables} >= {"players", "lines", "downloads", "decisions"}
    for path in tables:
        with path.open() as text:
            rows = sum(1 for _ in csv.DictReader(text))
        assert parquet.read_table(path.with_suffix(".parquet")).num_rows == rows > 0


def test_plots_are_drawn(rescued: Run) -> None:
    """PNG and SVG of the buffer, the lines and the distribution."""
    for name in ("buffer", "lines", "cdf"):
        for kind in ("png", "svg"):
            assert (rescued.folder / "plots" / f"{name}.{kind}").stat().st_size > 5_000


def test_nothing_is_left_behind(starved: Run, rescued: Run, behind_nat: Run) -> None:
    """No namespace and no directory of a finished run remains."""
    ids = [run.summary["run_id"] for run in (starved, rescued, behind_nat)]
    left = [p.name for folder in ("/run/netns", "/run/steerline") for p in Path(folder).glob("*")]
    assert not [name for name in left if any(run_id in name for run_id in ids)]


def decisions(run: Run) -> list[dict[str, str]]:
    with (run.folder / "series/decisions.csv").open() as text:
        return list(csv.DictReader(text))
