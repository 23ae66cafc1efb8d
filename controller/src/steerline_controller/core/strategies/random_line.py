"""random: each new flow on a line drawn by capacity, reproducible by its seed.

Jarschel 2014, section 4.3, experiment i.
"""

from __future__ import annotations

import random

from steerline_contract.flows import FiveTuple
from steerline_controller.core.state import SiteView
from steerline_controller.core.strategies.base import Deaf, Placement


class RandomLine(Deaf):
    """A line drawn at random, weighted by capacity."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """A draw among the usable lines."""
        lines = view.usable_lines()
        if not lines:
            return None
        weights = [line.link.capacity_bps for line in lines]
        return Placement(self._random.choices(lines, weights)[0].name, "drawn at random by capacity")
