"""Reports as words, for tests of the core."""

from __future__ import annotations

import dataclasses
from typing import Any

from steerline_contract.flows import FiveTuple, parse_address
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause

PEER = parse_address("198.18.1.11")
FLOW = FiveTuple(6, PEER, 40_000, parse_address("198.19.0.1"), 80)
GOOD = PlaybackReport(
    session_id="s1",
    sequence_number=1,
    timestamp_ms=1_001_000,
    cause=ReportCause.PERIODIC,
    player_state=PlayerState.PLAYING,
    buffer_length_ms=50_000,
    encoded_bitrate_kbps=2000,
    top_bitrate_kbps=2000,
    target_buffer_ms=55_000,
    flows=(FLOW,),
)


def at(second: float, buffer_s: float, **changes: Any) -> PlaybackReport:
    """The report of a second, with its own number and time."""
    return dataclasses.replace(
        GOOD,
        sequence_number=round(second * 10) + 1,
        timestamp_ms=1_000_000 + round(second * 1000),
        buffer_length_ms=round(buffer_s * 1000),
        **changes,
    )
