"""Whether a session's reports agree with the byte counters.

Over a window the player's word gives the media it gained: what its buffer grew by plus what it
played. Media costs bytes. A session that claims to starve on plenty, or to be fed by nothing, is
not protected for a while; its traffic goes on as anybody's.
"""

from __future__ import annotations

from collections.abc import Sequence

from steerline_contract.playback import PlayerState
from steerline_controller.core.snapshot import Resolution
from steerline_controller.core.state import FlowState, Ledger, SessionState

WINDOW_S = 20.0
DISTRUST_S = 60.0
# Claimed media against bytes: at most this factor apart, either way.
PLENTY = 2.5
NOTHING = 0.15
# Less media than this in a window proves nothing.
LEAST_MEDIA_S = 5.0


def contradiction(session: SessionState, flows: Sequence[FlowState], now: float) -> str:
    """Why the last window's reports cannot be true; "" while they can. Keeps the window."""
    assessment = session.assessment
    fed = sum(state.down_total for state in flows)
    names = frozenset(state.flow for state in flows)
    ledger = session.ledger
    steady = assessment.player_state in (PlayerState.PLAYING, PlayerState.REBUFFERING)
    if ledger is None or ledger.flows != names or not steady or session.resolution is not Resolution.EXACT:
        session.ledger = Ledger(now, assessment.buffer_length_ms, fed, names, assessment.player_state)
        return ""
    elapsed = now - ledger.since
    if elapsed < WINDOW_S:
        return ""
    grown_s = (assessment.buffer_length_ms - ledger.buffer_ms) / 1000
    played = elapsed if ledger.player_state is assessment.player_state is PlayerState.PLAYING else 0.0
    gained_s = max(0.0, grown_s + played)
    delivered = (fed - ledger.fed_bytes) * 8
    session.ledger = Ledger(now, assessment.buffer_length_ms, fed, ledger.flows, assessment.player_state)
    claimed = gained_s * assessment.play_bps
    if assessment.critical and delivered > PLENTY * max(claimed, elapsed * assessment.play_bps):
        return (
            f"{delivered / 8e6:.1f} MB came in {elapsed:.0f} s, "
            f"yet the buffer is said to have gained {gained_s:.0f} s"
        )
    if gained_s >= LEAST_MEDIA_S and delivered < NOTHING * claimed:
        return (
            f"the buffer is said to have gained {gained_s:.0f} s of media "
            f"while {delivered / 8e6:.1f} MB came in {elapsed:.0f} s"
        )
    return ""
