"""Which of a run's screenshots tell its story, ready to stand in a page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steerline_testbed.experiment.series import Sample

_NAME = re.compile(r"^player1-(\d+)s\.jpg$")


@dataclass(frozen=True, slots=True)
class Shot:
    """One screenshot of the first video's browser, and what its player was at then."""

    path: Path
    time_s: float
    sample: Sample

    @property
    def address(self) -> str:
        """The picture itself as an address, so that a page with it stands alone."""
        return "data:image/jpeg;base64," + base64.b64encode(self.path.read_bytes()).decode()

    @property
    def words(self) -> str:
        """When it was taken, and what it shows."""
        state = {"PLAYING": "playing", "REBUFFERING": "frozen", "STARTING": "starting"}.get(
            self.sample.state, self.sample.state.lower()
        )
        return f"{self.time_s:.0f} s: {state}, {self.sample.height}p, {self.sample.buffer_s:.0f} s buffered"


def find_shots(raw: Path, samples: Sequence[Sample]) -> list[Shot]:
    """All screenshots of the first video, by time; without samples none."""
    found: list[Shot] = []
    for path in raw.glob("player1-*.jpg") if samples else ():
        if name := _NAME.match(path.name):
            time_s = float(name[1])
            found.append(Shot(path, time_s, min(samples, key=lambda one: abs(one.time_s - time_s))))
    return sorted(found, key=lambda one: one.time_s)


def choose(shots: Sequence[Shot], begin_s: float, end_s: float) -> list[Shot]:
    """At most three, by time: the middle of the run, its worst moment from `begin_s` on, and the end.

    The worst is the first in a stall, else the one with the least buffer.
    """
    if not shots:
        return []
    later = [one for one in shots if one.time_s >= begin_s] or shots
    frozen = [one for one in later if one.sample.state == "REBUFFERING"]
    worst = frozen[0] if frozen else min(later, key=lambda one: one.sample.buffer_s)
    middle = min(shots, key=lambda one: abs(one.time_s - end_s / 2))
    chosen = {one.path: one for one in (middle, worst, shots[-1])}
    return sorted(chosen.values(), key=lambda one: one.time_s)
