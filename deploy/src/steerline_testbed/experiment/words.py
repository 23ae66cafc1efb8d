"""Figures as people read them; an en dash where there is none."""

from __future__ import annotations


def percent(share: float | None) -> str:
    """0.953 is 95 %."""
    return "–" if share is None else f"{100 * share:.0f} %"


def seconds(value: float | None) -> str:
    """12.34 is 12.3 s."""
    return "–" if value is None else f"{value:.1f} s"


def ratio(value: float | None) -> str:
    """Three places."""
    return "–" if value is None else f"{value:.3f}"


def mbps(value: float | None) -> str:
    """Bit/s as Mbps."""
    return "–" if value is None else f"{value / 1e6:.2f} Mbps"
