"""What the station heard, held against what the pages know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steerline_testbed.browser import reporting
from steerline_testbed.browser.reporting import Report, Session, Track
from steerline_testbed.experiment.clock import Zero
from steerline_testbed.experiment.series import Sample

ZERO = Zero(unix_s=1_800_000_000.0, monotonic_s=50.0)
HERE, THERE = "198.18.1.11", "198.18.1.12"


def page(buffers: list[tuple[float, float]], state: str = "PLAYING") -> list[Sample]:
    return [Sample(time_s, 1, state, buffer_s) for time_s, buffer_s in buffers]


def said(buffers: list[tuple[float, float]], state: str = "PLAYING") -> list[Report]:
    return [Report(time_s, time_s + 0.01, buffer_s, state) for time_s, buffer_s in buffers]


def test_a_report_between_two_samples_is_right_on_either_side_of_a_segment() -> None:
    """The buffer falls as it plays and jumps by a segment, nobody knows when: both readings are true."""
    samples = page([(10.0, 20.0), (10.5, 21.5)])
    before, after = Report(10.25, 10.25, 19.75, "PLAYING"), Report(10.25, 10.25, 21.75, "PLAYING")
    wrong = Report(10.25, 10.25, 20.75, "PLAYING")
    assert reporting.differences([before, after, wrong], samples) == pytest.approx([0.0, 0.0, 1.0])


def test_only_what_is_known_is_compared() -> None:
    """Before the first sample, after the last, out of play and over a gap of the page there is no truth."""
    samples = page([(10.0, 20.0), (10.5, 19.5), (15.0, 19.0)])
    reports = said([(9.0, 3.0), (12.0, 3.0), (16.0, 3.0)]) + said([(10.2, 3.0)], "PAUSED")
    assert reporting.differences(reports, samples) == []


@given(offset_s=some.floats(-30, 30), play=some.lists(some.floats(0, 0.999), min_size=1, max_size=20))
def test_a_constant_error_is_found_as_it_is(offset_s: float, play: list[float]) -> None:
    """Reports that are wrong by so much are told to be wrong by so much, whenever they come."""
    samples = page([(half / 2, 100 - half / 2) for half in range(43)])
    reports = said([(index + part, 100 - index - part + offset_s) for index, part in enumerate(play)])
    found = reporting.differences(reports, samples)
    assert found == pytest.approx([abs(offset_s)] * len(play), abs=1e-6)


def test_each_customers_session_is_its_own() -> None:
    """Two customers with the same film: the address tells whose session it is."""
    film = page([(float(second), 10.0) for second in range(20)])
    tracks = {"player1": Track([HERE], film), "player2": Track([THERE], film)}
    reports = said([(float(second) + 0.5, 9.5) for second in range(10)])
    assert reporting.owner_of(Session(THERE, reports), tracks) == "player2"


def test_tabs_of_one_customer_are_told_apart_by_what_they_did() -> None:
    """Of three tabs behind one address each session is the one whose state and buffer it tells."""
    seconds = range(30)
    tracks = {
        "player1": Track([HERE], page([(float(at), 30.0) for at in seconds])),
        "player2": Track([HERE], page([(float(at), 24.0) for at in seconds])),
        "paused1": Track([HERE], page([(float(at), 24.0) for at in seconds], "PAUSED")),
    }
    for name, buffer_s, state in (
        ("player1", 29.4, "PLAYING"),
        ("player2", 24.2, "PLAYING"),
        ("paused1", 24.2, "PAUSED"),
    ):
        reports = said([(at + 0.5, buffer_s) for at in seconds], state)
        # Behind a home router the address is nobody's, and the same holds.
        for address in (HERE, "198.18.2.1"):
            assert reporting.owner_of(Session(address, reports), tracks) == name


def test_a_session_of_two_reports_is_nobodys() -> None:
    """Where several tabs may be meant, a session too short to tell is left out."""
    film = page([(float(second), 10.0) for second in range(20)])
    tracks = {"player1": Track([HERE], film), "player2": Track([HERE], film)}
    assert reporting.owner_of(Session(HERE, said([(1.5, 9.5), (2.5, 9.5)])), tracks) is None


@pytest.mark.parametrize(
    ("arrivals", "share"),
    [([2.1, 3.2, 4.3], 0.6), ([2.1, 2.9, 3.0, 7.5], 0.4), ([], 0.0), ([1.9, 7.0], 0.0)],
)
def test_seconds_with_a_report(arrivals: list[float], share: float) -> None:
    """Of the five whole seconds from 2 s on, those in which at least one report came."""
    assert reporting.share_of_seconds(arrivals, 2.0, 7.9) == pytest.approx(share)


def test_the_figures_of_a_run(tmp_path: Path) -> None:
    """From both records: who, how many, how often, how right, how soon; the tear-down does not count."""
    rows: list[dict[str, object]] = [
        {"kind": "session", "session_id": "a1", "address": HERE},
        {"kind": "line", "line": "line1"},
    ]
    for second in range(1, 31):
        rows.append(
            {
                "kind": "sample",
                "session_id": "a1",
                "time_s": ZERO.unix_s + second + 0.6,
                "timestamp_ms": (ZERO.unix_s + second + 0.5) * 1000,
                "buffer_length_ms": 10_100,
                "player_state": "PLAYING",
            }
        )
    record = tmp_path / "reports.jsonl"
    record.write_text("".join(json.dumps(row) + "\n" for row in rows))
    truth = tmp_path / "player1.jsonl"
    truth.write_text(
        "".join(
            json.dumps(
                {"kind": "sample", "time_s": ZERO.unix_s + at, "player_state": "PLAYING", "buffer_s": 10.5}
            )
            + "\n"
            for at in range(1, 33)
        )
    )
    tracks = {"player1": reporting.read_track(truth, [HERE], ZERO)}
    found = reporting.compare(record, tracks, ZERO, 20.0)["player1"]
    assert found["session_ids"] == ["a1"]
    assert found["reports"] == 19
    assert found["share_of_seconds"] == 1.0
    assert found["longest_gap_s"] == pytest.approx(1.0)
    assert found["mean_difference_s"] == pytest.approx(0.1, abs=1e-6)
    assert found["first_report_s"] == pytest.approx(1.6)


def test_a_run_without_a_report_has_no_figures(tmp_path: Path) -> None:
    """No record, no page: nothing is made up."""
    tracks = {"player1": reporting.read_track(tmp_path / "none.jsonl", [HERE], ZERO)}
    found = reporting.compare(tmp_path / "none.jsonl", tracks, ZERO, 20.0)["player1"]
    assert found["session_ids"] == [] and found["reports"] == 0
    assert [name for name, value in found.items() if value is None] == [
        "share_of_seconds",
        "longest_gap_s",
        "mean_difference_s",
        "largest_difference_s",
        "first_report_s",
    ]
