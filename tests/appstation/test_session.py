"""What one report means: bounds, hysteresis, need, time to empty."""

from __future__ import annotations

import pytest

from steerline_appstation.core.addresses import Attributed
from steerline_appstation.core.assess import bounds_ms, need_bps, play_bps
from steerline_appstation.core.policy import Policy
from steerline_appstation.core.session import Session
from steerline_contract.playback import PlaybackReport, PlayerState
from steerline_contract.steering import Assessment

from .words import at


class Player:
    """A session under test."""

    def __init__(self) -> None:
        self._session = Session(Policy())

    def says(self, report: PlaybackReport) -> Assessment:
        return self._session.assess(report, Attributed(report.flows))


@pytest.mark.parametrize(
    ("target_s", "low_s", "high_s"),
    [(None, 20, 35), (55, 20, 35), (50, 20, 35), (30, 12, 21), (10, 4, 7), (0.5, 0.2, 0.35)],
)
def test_bounds_never_exceed_the_share_of_the_target(
    target_s: float | None, low_s: float, high_s: float
) -> None:
    """low <= 0.4 target, high <= 0.7 target, else as set."""
    assert bounds_ms(Policy(), target_s) == (low_s * 1000, high_s * 1000)


def test_need_is_the_top_rate_and_the_refill() -> None:
    """2 Mbps, 15 s missing, to be refilled in 20 s: 2 * 1.05 * (1 + 15/20)."""
    assert need_bps(2000, 20_000, 35_000, 20.0) == 3_675_000
    assert need_bps(2000, 40_000, 35_000, 20.0) == 2_100_000


def test_need_of_an_untold_rate() -> None:
    """Without any rate told, 2.5 Mbps is taken; a rate seen is better than none."""
    assert need_bps(0, 35_000, 35_000, 20.0) == 2_625_000
    player = Player()
    first = player.says(at(1, 50, top_bitrate_kbps=0, encoded_bitrate_kbps=3000))
    assert first.need_bps == 3_150_000
    fallen = player.says(at(2, 50, top_bitrate_kbps=0, encoded_bitrate_kbps=800))
    assert (fallen.need_bps, fallen.play_bps) == (3_150_000, 840_000)


def test_faster_than_life_needs_more() -> None:
    """At twice the speed a second of media lasts half a second."""
    assert need_bps(2000, 35_000, 35_000, 20.0, 2.0) == 4_200_000
    assert play_bps(2000, 2000, 2.0) == 4_200_000
    assert play_bps(2000, 2000, 0.0) == 2_100_000


def test_hysteresis() -> None:
    """Critical below 20 s, and until 35 s are reached, not a report longer."""
    player = Player()
    levels = [(50, False), (20, False), (19.999, True), (20, True), (34.999, True), (35, False), (20, False)]
    for second, (buffer_s, critical) in enumerate(levels):
        assert player.says(at(second, buffer_s)).critical is critical, buffer_s


def test_initial_loading_is_not_critical() -> None:
    """While nothing was shown yet every buffer is low, and that is no emergency."""
    player = Player()
    for second in range(3):
        assert not player.says(at(second, second, player_state=PlayerState.STARTING)).critical
    assert player.says(at(4, 2.5)).critical
    assert player.says(at(5, 2.5, player_state=PlayerState.STARTING)).critical


@pytest.mark.parametrize(
    "state",
    [
        PlayerState.PAUSED,
        PlayerState.SEEKING,
        PlayerState.WAITING,
        PlayerState.ENDED,
        PlayerState.FATAL_ERROR,
        PlayerState.QUIT,
    ],
)
def test_who_does_not_play_is_not_critical(state: PlayerState) -> None:
    """Only while it plays; and a pause does not make it forget that it was starving."""
    player = Player()
    assert player.says(at(1, 5)).critical
    assert not player.says(at(2, 5, player_state=state)).critical
    assert player.says(at(3, 25)).critical


def test_what_is_wholly_buffered_is_not_critical() -> None:
    """The last seconds of a film are low and fine."""
    player = Player()
    player.says(at(1, 50))
    assert not player.says(at(2, 10, remaining_media_ms=10_000)).critical
    assert player.says(at(3, 10, remaining_media_ms=10_001)).critical
    assert player.says(at(4, 10, remaining_media_ms=None)).critical


def test_time_to_empty_is_the_trend() -> None:
    """A buffer that loses half a second a second from 30 s is empty in 60 s."""
    player = Player()
    told = [player.says(at(second, 32 - 0.5 * second)).time_to_empty_ms for second in range(5)]
    assert told[0] is None
    assert told[-1] == pytest.approx(60_000, rel=0.001)


def test_no_time_to_empty_while_it_does_not_fall() -> None:
    """A level, or rising, buffer has none."""
    level, rising = Player(), Player()
    assert [level.says(at(s, 30)).time_to_empty_ms for s in range(5)] == [None] * 5
    assert [rising.says(at(s, 30 + s)).time_to_empty_ms for s in range(5)] == [None] * 5


def test_a_stall_is_empty() -> None:
    """Whatever trickles in while the picture stands, the viewer has nothing."""
    player = Player()
    player.says(at(1, 1))
    assert player.says(at(2, 1.5, player_state=PlayerState.REBUFFERING)).time_to_empty_ms == 0


def test_a_seek_is_no_trend() -> None:
    """A jump that playing cannot explain does not count as falling."""
    player = Player()
    for second in range(5):
        player.says(at(second, 50))
    assert player.says(at(5, 10)).time_to_empty_ms is None


def test_an_untold_target_is_learnt() -> None:
    """A player that holds 10 s although the network could give more is content with 10 s."""
    player = Player()
    spare = {"target_buffer_ms": 0, "measured_throughput_kbps": 9000}
    told = [player.says(at(s, 9.5 + (s % 2) / 2, **spare)) for s in range(12)]
    assert told[0].critical
    assert told[0].low_ms == 20_000
    assert not told[-1].critical
    assert (told[-1].low_ms, told[-1].high_ms) == (4_000, 7_000)


def test_starvation_is_not_learnt() -> None:
    """A buffer that a scarce network holds down is no target: the session stays critical."""
    scarce, untold = Player(), Player()
    for second in range(60):
        assert scarce.says(at(second, 9, target_buffer_ms=0, measured_throughput_kbps=2100)).critical
        assert untold.says(at(second, 3, target_buffer_ms=0)).critical


def test_a_told_target_wins() -> None:
    """What the player says of its own goal is believed, from then on."""
    player = Player()
    player.says(at(1, 15, target_buffer_ms=30_000))
    assert player.says(at(2, 15, target_buffer_ms=0)).low_ms == 12_000
