"""round-robin: each new flow on the next line, smoothly weighted by capacity.

Jarschel 2014, section 4.3, experiment iii.

Equal lines are used in turn. With unequal lines each is used as often as its capacity says, spread
as evenly as can be: each turn every line gains its capacity as credit, the richest is used and pays
the sum of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from steerline_contract.flows import FiveTuple
from steerline_controller.core.state import LineView, SiteView
from steerline_controller.core.strategies.base import Deaf, Placement


class Rotation:
    """Smooth weighted round-robin over whatever lines it is shown."""

    def __init__(self) -> None:
        self._credit: dict[str, int] = {}

    def next(self, lines: Sequence[LineView]) -> LineView | None:
        """The line whose turn it is. Lines not shown keep no credit."""
        if not lines:
            return None
        self._credit = {line.name: self._credit.get(line.name, 0) + line.link.capacity_bps for line in lines}
        chosen = max(lines, key=lambda line: self._credit[line.name])
        self._credit[chosen.name] -= sum(line.link.capacity_bps for line in lines)
        return chosen


class RoundRobin(Deaf):
    """Each new flow on the next line."""

    name = "round-robin"

    def __init__(self) -> None:
        self._rotation = Rotation()

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """The line whose turn it is."""
        line = self._rotation.next(view.usable_lines())
        return Placement(line.name, "next in turn") if line else None
