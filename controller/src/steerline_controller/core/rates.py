"""Rates from counters: byte deltas over the time between two readings, never over a rule's duration."""

from __future__ import annotations

from collections.abc import Mapping

from steerline_contract.flows import FiveTuple
from steerline_controller.core.events import Side
from steerline_controller.core.state import FlowState, SiteView

# What media or a download carries at least; acknowledgements and keep-alives do not.
MEDIA_BPS = 50_000


class Rates:
    """Remembers the last reading of each switch."""

    def __init__(self) -> None:
        self._read_at: dict[Side, float] = {}
        self._lines: dict[tuple[Side, str], int] = {}

    def forget(self, side: Side) -> None:
        """A switch connected anew: its next reading is a first one."""
        self._read_at.pop(side, None)

    def update(
        self,
        view: SiteView,
        side: Side,
        flows: Mapping[FiveTuple, int],
        lines: Mapping[str, tuple[int, int]],
        now: float,
    ) -> None:
        """Writes rates into the view: upstream from A's counters, downstream from B's."""
        before = self._read_at.get(side)
        self._read_at[side] = now
        interval = now - before if before is not None else 0.0
        for name, (received, _) in lines.items():
            line = view.lines.get(name)
            if line is None:
                continue
            gained = received - self._lines.get((side, name), received)
            self._lines[side, name] = received
            rate = gained * 8 / interval if interval > 0 and gained > 0 else 0.0
            if side == "A":
                line.down_bps = rate
            else:
                line.up_bps = rate
        for flow, total in flows.items():
            state = view.flows.get(flow)
            if state is not None:
                _count(state, side, total, interval, now)


def _count(state: FlowState, side: Side, total: int, interval: float, now: float) -> None:
    known = state.up_bytes if side == "A" else state.down_bytes
    # A counter that went back belongs to a new rule of the same flow.
    gained = total - known if total >= known else total
    rate = gained * 8 / interval if interval > 0 else 0.0
    if side == "A":
        state.up_bytes, state.up_bps = total, rate
    else:
        state.down_bytes, state.down_bps = total, rate
        if interval > 0:
            state.down_total += gained
        if rate >= MEDIA_BPS:
            state.media_at = now
    if gained:
        state.active_at = now
