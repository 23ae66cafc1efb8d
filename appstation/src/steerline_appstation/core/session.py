"""One session: reports in, assessments out.

A session is critical from the report that shows less than `low` until one shows `high` or more, only
while it plays and has more media to come than it holds.
"""

from __future__ import annotations

from typing import Final

from steerline_appstation.core.addresses import Attributed
from steerline_appstation.core.assess import bounds_ms, need_bps, play_bps
from steerline_appstation.core.buffer import SPARE_THROUGHPUT, LearntTarget, Trend
from steerline_appstation.core.policy import Policy
from steerline_contract.limits import DAY_MS
from steerline_contract.playback import PlaybackReport, PlayerState
from steerline_contract.steering import Assessment

# States in which a session wants media at once. STARTING counts only after a first play (a seek
# or a new period): at the very start every buffer is low, and nothing is wrong.
WANTS_MEDIA: Final = frozenset({PlayerState.PLAYING, PlayerState.REBUFFERING, PlayerState.STARTING})
# States that show that the session has played.
HAS_PLAYED: Final = frozenset({PlayerState.PLAYING, PlayerState.REBUFFERING})


class Session:
    """The inner state of one session's assessment. Knows no address and no order of reports."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._played = False
        self._latched = False
        self._top_told_kbps = 0
        self._top_seen_kbps = 0
        self._encoded_kbps = 0
        self._target_told_ms = 0
        self._trend = Trend()
        self._learnt = LearntTarget()

    @property
    def target_s(self) -> float | None:
        """The buffer this player aims at: told, else learnt, else None."""
        if self._target_told_ms:
            return self._target_told_ms / 1000
        return self._learnt.target_s

    def assess(self, report: PlaybackReport, attributed: Attributed) -> Assessment:
        """Takes a report that was checked (order, addresses) and says what it means."""
        self._learn(report)
        low_ms, high_ms = bounds_ms(self._policy, self.target_s)
        buffer_ms = report.buffer_length_ms
        if buffer_ms >= high_ms:
            self._latched = False
        elif self._played and buffer_ms < low_ms:
            self._latched = True
        wants = self._played and report.player_state in WANTS_MEDIA
        more = report.remaining_media_ms is None or report.remaining_media_ms > buffer_ms
        top_kbps = self._top_told_kbps or self._top_seen_kbps
        return Assessment(
            session_id=report.session_id,
            player_state=report.player_state,
            buffer_length_ms=buffer_ms,
            critical=self._latched and wants and more,
            need_bps=need_bps(top_kbps, buffer_ms, high_ms, self._policy.refill_s, report.playback_rate),
            play_bps=play_bps(self._encoded_kbps, top_kbps, report.playback_rate),
            low_ms=low_ms,
            high_ms=high_ms,
            time_to_live_ms=round(self._policy.report_timeout_s * 1000),
            time_to_empty_ms=self._time_to_empty_ms(report),
            flows=attributed.flows,
            translated=attributed.translated,
            reason=self._reason(report, low_ms, high_ms, wants, more, attributed.left_out),
        )

    def resume(self) -> None:
        """Goes on after a silence: levels before it are no trend, what was learnt stays."""
        self._trend.reset()
        self._learnt.reset()

    def _learn(self, report: PlaybackReport) -> None:
        self._played = self._played or report.player_state in HAS_PLAYED
        self._top_told_kbps = report.top_bitrate_kbps or self._top_told_kbps
        self._encoded_kbps = report.encoded_bitrate_kbps or self._encoded_kbps
        self._top_seen_kbps = max(self._top_seen_kbps, report.encoded_bitrate_kbps)
        self._target_told_ms = report.target_buffer_ms or self._target_told_ms
        if report.player_state is not PlayerState.PLAYING:
            self._trend.reset()
            self._learnt.reset()
            return
        time_s, buffer_s = report.timestamp_ms / 1000, report.buffer_length_ms / 1000
        self._trend.add(time_s, buffer_s, report.playback_rate)
        spare = None
        if report.measured_throughput_kbps and self._encoded_kbps:
            spare = report.measured_throughput_kbps >= SPARE_THROUGHPUT * self._encoded_kbps
        self._learnt.add(time_s, buffer_s, spare)

    def _time_to_empty_ms(self, report: PlaybackReport) -> int | None:
        if report.player_state is PlayerState.REBUFFERING:
            return 0  # It is empty as far as the viewer can see, whatever trickles in.
        empty_s = self._trend.time_to_empty_s(report.buffer_length_ms / 1000)
        return None if empty_s is None else min(DAY_MS, round(empty_s * 1000))

    def _reason(
        self, report: PlaybackReport, low_ms: int, high_ms: int, wants: bool, more: bool, left_out: int
    ) -> str:
        held = f"{report.buffer_length_ms / 1000:.1f} s buffered"
        if not wants:
            waits = "" if self._played else ", not played yet"
            text = f"{held}, {report.player_state.name.lower()}{waits}"
        elif not more:
            text = f"{held}, all that remains"
        elif not self._latched:
            text = f"{held}, enough (low {low_ms / 1000:g} s)"
        elif report.buffer_length_ms < low_ms:
            text = f"{held}, below low ({low_ms / 1000:g} s)"
        else:
            text = f"{held}, was below low, high ({high_ms / 1000:g} s) not reached yet"
        if left_out:
            text += f"; {left_out} flows of the other address family cannot be attributed"
        return text
