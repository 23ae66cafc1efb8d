"""How measurements count: losses, gaps, percentiles, on records whose answers are plain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerline_testbed.measure.crossings import summarise
from steerline_testbed.measure.faults import last_sample, longest_gap_s
from steerline_testbed.measure.lab import parse_counters, percentile, spread
from steerline_testbed.measure.paced import ENTRY, Arrival, account, read
from steerline_testbed.measure.shares import equal_share

MS = 1_000_000


def came(*numbers: int) -> list[Arrival]:
    return [Arrival(number, index * 10 * MS) for index, number in enumerate(numbers)]


def test_what_is_missing_between_first_and_last_is_lost() -> None:
    """Packets before the first and after the last that came are not judged."""
    counted = account(came(5, 6, 8, 9))
    assert (counted.sent, counted.lost, counted.doubled, counted.reordered) == (5, 1, 0, 0)


def test_late_is_not_lost_and_twice_is_not_two() -> None:
    """A packet after a later one is reordered; one that comes again is doubled."""
    counted = account(came(1, 3, 2, 2, 4))
    assert (counted.sent, counted.lost, counted.doubled, counted.reordered) == (4, 0, 1, 2)


def test_nothing_came() -> None:
    """An empty record counts as nothing sent, not as nothing lost of much."""
    assert account([]).sent == 0


@given(st.permutations(list(range(1, 30))), st.sets(st.integers(2, 28)))
def test_order_never_changes_what_is_lost(order: list[int], gone: set[int]) -> None:
    """Whatever the order, lost is what is missing between the least and the greatest number."""
    left = [n for n in order if n not in gone]
    assert account(came(*left)).lost == len([n for n in gone if min(left) < n < max(left)])


def test_the_longest_gap_counts_from_the_cut_to_the_end_of_the_cut() -> None:
    """A flow that never comes back has a gap as long as the cut; others do not hide it."""
    steady = [Arrival(n, n * 10 * MS) for n in range(100)]
    stopped = [a for a in steady if a.at_ns < 300 * MS or a.at_ns > 700 * MS]
    assert longest_gap_s({1: steady, 2: stopped}, 250 * MS, 900 * MS) == 0.42
    assert longest_gap_s({1: []}, 0, 500 * MS) == 0.5


def test_a_half_written_entry_is_left_out(tmp_path: Path) -> None:
    """A receiver that was killed leaves a record that can be read."""
    whole = ENTRY.pack(7001, 1, 5) + ENTRY.pack(7001, 2, 6)
    (tmp_path / "record").write_bytes(whole + whole[:5])
    assert read(tmp_path / "record") == {7001: [Arrival(1, 5), Arrival(2, 6)]}


def test_percentiles_are_values_that_were_measured() -> None:
    """The smallest value that the share of all does not exceed; p99 of a thousand is the 990th."""
    values = [float(n) for n in range(1, 1001)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (500, 990, 1000)
    assert spread([3.0]) == {"n": 1, "p50": 3.0, "p99": 3.0, "max": 3.0}
    assert spread([]) == {"n": 0}


def test_tcp_counters_are_read_by_name() -> None:
    """Name lines and value lines of /proc/net, of TCP only."""
    text = "Ip: A B\nIp: 1 2\nTcp: RetransSegs OutSegs\nTcp: 3 4\nTcpExt: TCPDSACKRecv\nTcpExt: 5\n"
    assert parse_counters(text) == {"RetransSegs": 3, "OutSegs": 4, "TCPDSACKRecv": 5}


def test_missed_crossings_are_counted_as_missed() -> None:
    """A crossing without a barrier reply lowers nothing but the count of those that came."""
    rows = [
        {"number": 1, "missed": True},
        {"number": 2, "from_line": "a", "to_line": "b", "barrier_ms": 4.0, "first_packet_ms": 6.0},
        {"number": 3, "from_line": "a", "to_line": "a", "barrier_ms": 5.0, "first_packet_ms": None},
    ]
    result = summarise("\n".join(json.dumps(row) for row in rows))
    assert (result["crossings"], result["missed"], result["changed_line"]) == (3, 1, 1)
    assert result["to_first_packet_ms"]["n"] == 1


def test_a_players_record_that_ends_in_the_middle_of_a_line_is_read(tmp_path: Path) -> None:
    """Stalls stand in the last whole sample."""
    sample = {"kind": "sample", "player_state": "PLAYING", "buffer_s": 30.0, "stall_count": 0, "stall_s": 0.0}
    lines = [json.dumps(sample)] * 25 + [json.dumps(sample | {"stall_count": 2, "buffer_s": 9.0})]
    (tmp_path / "record").write_text("\n".join(lines) + '\n{"kind": "sam')
    assert last_sample(tmp_path / "record") == {"stalls": 2, "stall_s": 0.0, "least_buffer_s": 9.0}


def test_an_equal_share_is_one_where_all_connections_get_the_same() -> None:
    """On one line, and on five of which one has a connection more."""
    assert equal_share(1.9, 1.9, flows=4, lines=1) == pytest.approx(1.9)
    full = 9.5
    mine, others = full / 5, (4 * full + full * 4 / 5) / 20
    assert equal_share(mine, others, flows=20, lines=5) == pytest.approx(mine)
