"""Whether a line that has carrier lets anything out at the other end.

Signs of life in each direction: a probe that came out, or bytes counted at the far end. When the
controller itself stood still, no line is blamed for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from steerline_controller.core.config import LivenessSettings
from steerline_controller.core.events import Side


@dataclass(slots=True)
class _Direction:
    """What comes out at one end of a line."""

    life_at: float
    bytes_out: int | None = None
    probes: int = 0


@dataclass(slots=True)
class LineLiveness:
    """One line. `watch` begins when both switches are connected; before that nothing is said."""

    settings: LivenessSettings
    _ends: dict[Side, _Direction] = field(default_factory=dict[Side, _Direction])
    _ticked_at: float | None = None
    silent: bool = False

    def watch(self, now: float) -> None:
        """Both switches are there (again): probes flow from now on."""
        later = now + self.settings.grace_s
        self._ends = {"A": _Direction(later), "B": _Direction(later)}
        self._ticked_at = None

    def rest(self) -> None:
        """A switch is away: nothing can be said of the line."""
        self._ends = {}

    def probe(self, side: Side, now: float) -> None:
        """A probe came out at `side`."""
        end = self._ends.get(side)
        if end is not None:
            end.life_at = max(end.life_at, now)
            end.probes += 1

    def count(self, side: Side, bytes_out: int, now: float) -> None:
        """Bytes received from the line at `side` since the port began."""
        end = self._ends.get(side)
        if end is None:
            return
        if end.bytes_out is not None and bytes_out > end.bytes_out:
            end.life_at = max(end.life_at, now)
        end.bytes_out = bytes_out

    def tick(self, now: float) -> bool:
        """Time went on. Returns whether `silent` changed."""
        if self._ticked_at is not None and now - self._ticked_at > self.settings.stall_s:
            # The controller stood still: what came meanwhile is not yet read.
            for end in self._ends.values():
                end.life_at += now - self._ticked_at
        self._ticked_at = now
        if not self._ends:
            return False
        quiet = any(now - end.life_at > self.settings.silent_after_s for end in self._ends.values())
        if quiet:
            for end in self._ends.values():
                end.probes = 0
        if not self.silent and quiet:
            self.silent = True
            return True
        enough = self.settings.alive_after_probes
        if self.silent and not quiet and all(end.probes >= enough for end in self._ends.values()):
            self.silent = False
            return True
        return False
