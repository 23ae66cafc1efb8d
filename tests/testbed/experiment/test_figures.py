"""Figures on series whose answers one can work out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerline_testbed.experiment import figures, traffic_figures
from steerline_testbed.experiment.series import (
    DecisionRow,
    DownloadLife,
    DownloadSample,
    LineSample,
    Sample,
)

from .handmade import film


def test_shares_of_time_weigh_each_sample_by_how_long_it_stood() -> None:
    """A buffer of 55 s for one second and of 10 s for three gives shares of a quarter and three quarters."""
    samples = film([(0, 55), (1, 10), (2, 10), (3, 10)])
    found = figures.buffer_figures(samples, traffic_start_s=0, end_s=4)
    assert found.share_at_least_50_s == pytest.approx(0.25)
    assert found.share_below_20_s == pytest.approx(0.75)


def test_shares_start_with_the_cross_traffic_and_statistics_with_50_s() -> None:
    """What happened before either moment does not count."""
    samples = film([(0, 0), (1, 30), (2, 52), (3, 54), (4, 40), (5, 40)])
    found = figures.buffer_figures(samples, traffic_start_s=4, end_s=6)
    assert found.first_reached_50_s_at_s == 2
    assert found.mean_s == pytest.approx((52 + 54 + 40 + 40) / 4)
    assert found.minimum_s == 40
    assert found.share_at_least_50_s == 0


def test_a_buffer_that_never_filled_has_no_statistics() -> None:
    """Figures that never came to be are None, not 0."""
    found = figures.buffer_figures(film([(0, 5), (1, 6)]), 0, 2)
    assert found.mean_s is None and found.minimum_s is None and found.first_reached_50_s_at_s is None


def test_crossings_downwards_need_the_buffer_to_have_been_above() -> None:
    """A start from nothing is no empty buffer, and a wobble while it fills no fall below 20 s."""
    samples = film([(0, 0), (1, 10), (2, 21), (3, 19), (4, 36), (5, 19), (6, 0), (7, 30)])
    found = figures.buffer_figures(samples, 0, 8)
    assert (found.first_below_20_s_at_s, found.first_empty_at_s) == (5, 6)


def test_a_gap_in_the_record_stands_for_at_most_two_seconds() -> None:
    """A sample before a gap does not stand for the whole gap."""
    pieces = figures.spans(film([(0, 1), (100, 1)]), 0, 101)
    assert sum(piece.length_s for piece in pieces) == pytest.approx(figures.LONGEST_STEP_S + 1)


def _played(states: str) -> list[Sample]:
    names = {"S": "STARTING", "P": "PLAYING", "R": "REBUFFERING", "L": "PLAYING"}
    return [
        Sample(float(second), 1, names[letter], 1.0, 360 if letter == "L" else 480)
        for second, letter in enumerate(states)
    ]


def test_stalls_are_spells_of_rebuffering_after_the_first_picture() -> None:
    """Two spells of two and one seconds are two stalls of 3 s; the start does not count."""
    found = figures.play_figures(_played("SSPPPRRPPRPP"), 12)
    assert (found.stall_count, found.stall_s, found.first_stall_at_s) == (2, 3, 5)
    assert found.start_up_delay_s == 2


def test_quality_is_counted_of_the_time_played_and_of_the_wall() -> None:
    """A stall takes from the share of the wall but not of the time played."""
    found = figures.play_figures(_played("PPPPLLRR"), 8)
    assert found.share_at_480p_of_played == pytest.approx(4 / 6)
    assert found.share_at_480p_of_wall == pytest.approx(4 / 8)
    assert found.quality_switches == 1


def test_a_run_counts_when_stalls_explain_what_was_not_played() -> None:
    """Half played and half stalled counts; half played and half unexplained does not."""
    explained = figures.play_figures(_played("P" * 10 + "R" * 10), 20)
    silent = figures.play_figures(_played("P" * 10), 20)
    assert explained.valid and explained.played_share == pytest.approx(0.5)
    assert not silent.valid and "95 %" in silent.reason


def test_a_player_that_never_played_makes_the_run_invalid() -> None:
    """It is said so."""
    assert figures.play_figures(_played("SSSS"), 4).reason == "it never played"
    assert not figures.play_figures([], 4).valid


def test_media_played_comes_from_the_playhead_where_it_is_known() -> None:
    """A playhead that moved 5 s in 10 s shows a player that lost time without saying so."""
    samples = [Sample(float(second), 1, "PLAYING", 1.0, 480, played_s=second / 2) for second in range(11)]
    assert figures.play_figures(samples, 10).played_s == pytest.approx(5)


def test_used_bandwidth_is_the_counters_rise_over_the_time_asked() -> None:
    """10 Mbps from 60 s on gives 10 Mbps from 60 s on, whatever was before."""
    samples = [
        LineSample(second, "line1", max(0, int((second - 60) * 1.25e6)), 0)
        for second in [0.0, 30.0, 60.0, 90.0, 120.0]
    ]
    assert traffic_figures.used_bps(samples, 60, 120) == {"line1": pytest.approx(10e6)}
    assert traffic_figures.used_bps(samples, 75, 105) == {"line1": pytest.approx(10e6)}
    assert traffic_figures.used_bps(samples, 0, 120) == {"line1": pytest.approx(5e6)}


def test_a_counter_that_began_anew_loses_nothing_it_counted() -> None:
    """A line that was cut and came back goes on from 0."""
    assert traffic_figures.bytes_between([(0, 100), (1, 200), (2, 50), (3, 150)], 0, 3) == 250


def test_a_gap_in_the_looking_is_found_wherever_it_is() -> None:
    """At the beginning, in the middle, or at the end."""
    looks = [LineSample(time_s, "line1", 0, 0) for time_s in (1.0, 2.0, 6.0, 7.0)]
    assert traffic_figures.longest_gap_s(looks, 8.0) == 4
    assert traffic_figures.longest_gap_s(looks, 12.0) == 5
    assert traffic_figures.longest_gap_s([], 8.0) is None


def test_rho_counts_unused_lines() -> None:
    """One full line of five gives 0.2."""
    capacity = {f"line{number}": 10_000_000 for number in range(1, 6)}
    assert traffic_figures.rho({"line1": 10e6, "line2": 0.0}, capacity) == pytest.approx(0.2)
    assert traffic_figures.rho({}, {}) is None


def test_each_download_counts_over_its_own_time() -> None:
    """1 Mbps for 100 s and 2 Mbps for 50 s have a mean of 1.5, and 1 is the slowest."""
    lives = {1: DownloadLife(1, 0.0), 2: DownloadLife(2, 50.0)}
    samples = [DownloadSample(100.0, 1, 12_500_000), DownloadSample(100.0, 2, 12_500_000)]
    found = traffic_figures.download_figures(samples, lives, 100)
    assert (found.mean_bps, found.slowest_bps, found.fastest_bps) == (1.5e6, 1e6, 2e6)
    assert found.last_started_at_s == 50 and found.ended_early == 0


def test_a_download_that_got_nothing_is_the_slowest() -> None:
    """It counts with 0, and is not left out."""
    lives = {1: DownloadLife(1, 0.0), 2: DownloadLife(2, 0.0, 40.0, "reset")}
    found = traffic_figures.download_figures([DownloadSample(100.0, 1, 1000)], lives, 100)
    assert (found.slowest_bps, found.ended_early) == (0.0, 1)


def test_moves_are_changes_of_line_and_placements_are_not() -> None:
    """A first placement and a keep are no moves; two moves in half a minute are four per minute."""
    rows = [
        DecisionRow(10, "steer", to_line="line1"),
        DecisionRow(70, "steer", from_line="line1", to_line="line2"),
        DecisionRow(71, "keep", from_line="line2", to_line="line2"),
        DecisionRow(72, "steer", from_line="line2", to_line="line1"),
    ]
    found = traffic_figures.decision_figures(rows, 60, 90)
    assert (found.steer, found.keep, found.moves, found.moves_per_minute) == (3, 1, 2, 4.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 60)), min_size=1, max_size=50),
    st.floats(0, 50),
)
def test_shares_are_shares(steps: list[tuple[float, float]], start_s: float) -> None:
    """Whatever was recorded, shares lie between 0 and 1 and the two of one buffer never exceed 1 together."""
    time_s, points = 0.0, list[tuple[float, float]]()
    for length_s, buffer_s in steps:
        points.append((time_s, buffer_s))
        time_s += length_s
    found = figures.buffer_figures(film(points), start_s, time_s)
    high, low = found.share_at_least_50_s, found.share_below_20_s
    assert (high is None) == (low is None)
    if high is not None and low is not None:
        assert 0 <= high <= 1 and 0 <= low <= 1 and high + low <= 1 + 1e-9


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=30), st.floats(0, 30), st.floats(0, 30))
def test_bytes_add_up(rises: list[int], first: float, second: float) -> None:
    """Bytes of [a, b] and of [b, c] are those of [a, c]."""
    total, points = 0, list[tuple[float, int]]()
    for second_s, rise in enumerate(rises):
        total += rise
        points.append((float(second_s), total))
    middle_s, end_s = sorted((first, second))
    parts = traffic_figures.bytes_between(points, 0, middle_s) + traffic_figures.bytes_between(
        points, middle_s, end_s
    )
    assert parts == pytest.approx(traffic_figures.bytes_between(points, 0, end_s), abs=1.0)


def test_a_picture_that_stands_with_media_in_store_is_no_stall() -> None:
    """A browser on a loaded machine decodes late: told as late. A stall stays one while its buffer fills."""
    samples = [
        *film([(0, 10), (1, 50)]),
        *film([(2, 49.8)], "REBUFFERING"),
        *film([(3, 49), (4, 0.5)]),
        *film([(5, 0.0), (6, 1.5), (7, 2.4)], "REBUFFERING"),
        *film([(8, 2.5), (9, 2)]),
    ]
    found = figures.play_figures(samples, end_s=10)
    assert (found.stall_count, found.stall_s, found.first_stall_at_s) == (1, 3, 5)
    assert found.late_s == 1
