"""How TCP flows share a line, as far as a strategy must know it.

TCP flows that always have data share a line about equally. A session gets its need on a line when
the equal share is at least that; its own connections count as one competitor, since one of them at
a time carries nearly all its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from steerline_controller.core.config import USABLE
from steerline_controller.core.state import FlowState, LineView, SessionState, SiteView

# After `high` the buffer goes on filling to `high + (high - low)`, in this time.
COMFORT_FILL_S = 30.0
# A line takes one flow more only when the buffer is this much above where one would have to leave.
SLACK_S = 2.0


def required_bps(session: SessionState, slack_s: float = 0.0) -> float:
    """The share a protected session should have now, in bit/s.

    Critical: its need. Later its need too, and on the way from `high` up to as far above it as `low`
    is below, what fills that distance in 30 s: a line is given back step by step, and a share that
    chance made too small is noticed long before `low`. `slack_s` is taken off the buffer.
    """
    assessment = session.assessment
    need = float(max(assessment.need_bps, assessment.play_bps))
    if assessment.critical:
        return need
    comfort_ms = 2 * assessment.high_ms - assessment.low_ms
    held_ms = max(assessment.buffer_length_ms - slack_s * 1000, assessment.high_ms)
    return need * (1 + max(0.0, comfort_ms - held_ms) / 1000 / COMFORT_FILL_S)


def room(line: LineView, required: Sequence[float]) -> int:
    """How many flows that take all they get may share the line with these sessions.

    From `sum(required) + n * max(required) <= usable capacity`: the share of each of the n flows is
    as large as the largest requirement.
    """
    largest = max(required)
    if largest <= 0:
        return 1_000_000
    return max(0, int((line.link.capacity_bps * USABLE - sum(required)) / largest))


def free_bps(line: LineView, required: Sequence[float]) -> float:
    """What is left of a line for one more session, best effort aside."""
    return line.link.capacity_bps * USABLE - sum(required)


def competitors(view: SiteView, line: str, protected: frozenset[str], now: float) -> list[FlowState]:
    """The flows on a line that compete with its protected sessions."""
    return [s for s in view.on_line(line) if s.session_id not in protected and s.competes(now)]
