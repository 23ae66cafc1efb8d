"""How the plots look: colours that colour-blind people can tell apart, and one way to save."""

from __future__ import annotations

import importlib
import io
from typing import Any

# matplotlib's types are mostly unknown to a strict checker.
matplotlib: Any = importlib.import_module("matplotlib")
matplotlib.use("Agg")
pyplot: Any = importlib.import_module("matplotlib.pyplot")

# Okabe and Ito's palette (2008), without black and yellow, which vanish on one of the two backgrounds.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
LINE_COLOURS = (BLUE, SKY, GREEN, ORANGE, PURPLE, RED)
INK = "#24292f"
# One shade that reads on white and on black; the report swaps it for the page's own text colour.
GRID = "#8b949e"

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.35,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",
    "savefig.bbox": "tight",
}


def style() -> Any:
    """A context in which figures are drawn in this style."""
    return pyplot.rc_context(_STYLE)


def png(figure: Any) -> bytes:
    """The figure as PNG on white."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150, facecolor="white")
    return out.getvalue()


def svg(figure: Any, name: str) -> bytes:
    """The figure as SVG without a background. `name` keeps ids apart when several stand in one page."""
    out = io.BytesIO()
    with pyplot.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()
