"""Lines that die, a controller that is killed, flows that are moved: what others notice."""

from __future__ import annotations

from typing import Literal

import pytest

from steerline_testbed.measure import crossings, faults, moves

pytestmark = pytest.mark.network


def quiet(text: str) -> None:
    del text


def test_a_move_loses_nothing() -> None:
    """A numbered flow below its share, moved a hundred times, arrives whole."""
    result = moves.measure(count=100, flows=0, seed=1, gap_s=0.1, say=quiet)
    assert result["moves"] == 100
    assert result["udp"]["sent"] > 2000
    assert result["udp"]["lost"] == 0
    assert result["udp"]["doubled"] == 0


@pytest.mark.parametrize("how", ["carrier", "silent"])
def test_a_line_that_dies_is_left(how: Literal["carrier", "silent"]) -> None:
    """Flows of a cut line come through again while it is still cut; the video does not stall."""
    result = faults.cuts(how=how, count=2, flows=10, seed=1, say=quiet)
    # The line stays cut for 6 s: a shorter gap means that the flows were taken elsewhere.
    assert result["gap_s"]["n"] == 2
    assert result["gap_s"]["max"] < 5
    assert result["video"]["stalls"] == 0


def test_flows_in_progress_do_not_notice_a_restart_of_the_controller() -> None:
    """Killed and started again: no packet of a flow with rules is lost, and steering comes back."""
    result = faults.restarts(count=2, flows=0, seed=1, away_s=2.0, mode="reactive", say=quiet)
    assert result["packets"] > 10_000
    assert result["lost_around_restarts"] == [0, 0]


def test_crossings_are_enforced_on_the_switches() -> None:
    """Each crossing report ends in a barrier reply, and the flow's packets in the new line."""
    result = crossings.measure(count=20, flows=10, seed=1, gap_s=0.1, say=quiet)
    assert result["missed"] == 0
    assert result["changed_line"] >= 10
    assert result["to_first_packet_ms"]["n"] == result["changed_line"]
