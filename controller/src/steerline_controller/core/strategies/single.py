"""single: everything on the first line that is alive, the worst case.

Jarschel 2014, section 4.3, experiment ii.
"""

from __future__ import annotations

from collections.abc import Mapping

from steerline_contract.flows import FiveTuple
from steerline_controller.core.state import SiteView
from steerline_controller.core.strategies.base import Deaf, Placement


class Single(Deaf):
    """All flows share one line."""

    name = "single"

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """The first usable line."""
        lines = view.usable_lines()
        return Placement(lines[0].name, "first usable line") if lines else None

    def weights(self, view: SiteView, now: float) -> Mapping[str, int]:
        """The first usable line only."""
        return {line.name: line.link.capacity_bps for line in view.usable_lines()[:1]}
