"""How much one address may say."""

from __future__ import annotations


class ReportBudget:
    """A token bucket: `per_s` reports a second, and as many as two seconds' worth at once."""

    def __init__(self, per_s: int, now_s: float) -> None:
        self._per_s = per_s
        self._most = 2.0 * per_s
        self._left = self._most
        self._filled_s = now_s

    def take(self, now_s: float) -> bool:
        """Whether one more report is within the budget."""
        self._left = min(self._most, self._left + (now_s - self._filled_s) * self._per_s)
        self._filled_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def idle(self, now_s: float) -> bool:
        """Whether it is full again, so that forgetting it changes nothing."""
        return self._left + (now_s - self._filled_s) * self._per_s >= self._most
