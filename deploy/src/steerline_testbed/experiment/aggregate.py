"""Figures of several runs of one kind: mean and 95 % confidence interval over seeds. Pure."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steerline_testbed.experiment.jsons import mapping

# Student's t, two-sided 95 %, by degrees of freedom 1 to 30; beyond, the normal distribution's within 2 %.
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and half the width of its 95 % t-interval; None with fewer than two values."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    freedom = len(values) - 1
    t = T_95[freedom - 1] if freedom <= len(T_95) else 1.96
    return mean, t * statistics.stdev(values) / len(values) ** 0.5


Getter = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True, slots=True)
class Column:
    """One figure: its name, unit, how to take it from a summary, and places after the point."""

    name: str
    unit: str
    get: Getter
    places: int = 2
    scale: float = 1.0


def _of_videos(part: str, name: str, choose: Callable[[list[float]], float]) -> Getter:
    """The figure over all videos of a run; None when no video has it."""

    def get(summary: Mapping[str, Any]) -> float | None:
        values = [one[part][name] for one in summary["videos"] if one[part][name] is not None]
        return choose(values) if values else None

    return get


def _of(part: str, name: str) -> Getter:
    return lambda summary: summary[part][name]


def _slowest_over_median(summary: Mapping[str, Any]) -> float | None:
    downloads = summary["downloads"]
    return downloads["slowest_bps"] / downloads["median_bps"] if downloads["median_bps"] else None


def _p99_ms(summary: Mapping[str, Any]) -> float | None:
    told = mapping((mapping(summary["enforcement"]) or {}).get("enforced")) or {}
    return told.get("p99_ms")


COLUMNS: Sequence[Column] = (
    Column("stalls", "", _of_videos("play", "stall_count", sum), 1),
    Column("stalled", "s", _of_videos("play", "stall_s", sum), 1),
    Column("first stall at", "s", _of_videos("play", "first_stall_at_s", min), 1),
    Column("at 480p, of wall", "%", _of_videos("play", "share_at_480p_of_wall", statistics.fmean), 1, 100),
    Column("start-up", "s", _of_videos("play", "start_up_delay_s", max), 2),
    Column("least buffer", "s", _of_videos("buffer", "minimum_s", min), 1),
    Column("buffer ≥ 50 s", "%", _of_videos("buffer", "share_at_least_50_s", statistics.fmean), 1, 100),
    Column("buffer < 20 s", "%", _of_videos("buffer", "share_below_20_s", statistics.fmean), 1, 100),
    Column("below 20 s at", "s", _of_videos("buffer", "first_below_20_s_at_s", min), 1),
    Column("empty at", "s", _of_videos("buffer", "first_empty_at_s", min), 1),
    Column("rho", "", _of("lines", "rho"), 3),
    Column("rho, all running", "", _of("lines", "rho_all_downloads_running"), 3),
    Column("rho, goodput", "", _of("lines", "rho_goodput"), 3),
    Column("download mean", "Mbps", _of("downloads", "mean_bps"), 3, 1e-6),
    Column("download median", "Mbps", _of("downloads", "median_bps"), 3, 1e-6),
    Column("download slowest", "Mbps", _of("downloads", "slowest_bps"), 3, 1e-6),
    Column("slowest/median", "", _slowest_over_median, 2),
    Column("moves", "/min", _of("decisions", "moves_per_minute"), 1),
    Column("enforced p99", "ms", _p99_ms, 2),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one kind of run, over its seeds. `n` runs had it; `worst` is the extremes."""

    n: int
    mean: float | None
    half_width: float | None
    least: float | None
    greatest: float | None


@dataclass(frozen=True, slots=True)
class Kind:
    """Runs of one name, aggregated over those that count."""

    name: str
    runs: int
    valid: int
    cells: Mapping[str, Cell]


def aggregate(name: str, summaries: Sequence[Mapping[str, Any]]) -> Kind:
    """Only valid runs enter the figures; how many did not is beside them."""
    valid = [one for one in summaries if one["valid"]]
    cells: dict[str, Cell] = {}
    for column in COLUMNS:
        values = [value * column.scale for one in valid if (value := column.get(one)) is not None]
        if values:
            mean, half = interval(values)
            cells[column.name] = Cell(len(values), mean, half, min(values), max(values))
        else:
            cells[column.name] = Cell(0, None, None, None, None)
    return Kind(name, len(summaries), len(valid), cells)


def cell_text(cell: Cell, runs: int, places: int) -> str:
    """`0.987 ± 0.002`; in how many runs it came to be, where not in all."""
    if cell.mean is None:
        return "–"
    text = f"{cell.mean:.{places}f}"
    if cell.half_width is not None and round(cell.half_width, places) > 0:
        text += f" ± {cell.half_width:.{places}f}"
    return text if cell.n == runs else f"{text} (in {cell.n} of {runs})"


def markdown(kinds: Sequence[Kind]) -> str:
    """A table with a row per figure and a column per kind of run."""
    rows = [["", *(kind.name for kind in kinds)], ["---"] + ["---:"] * len(kinds)]
    rows.append(["runs that count", *(f"{kind.valid} of {kind.runs}" for kind in kinds)])
    for column in COLUMNS:
        if not any(kind.cells[column.name].n for kind in kinds):
            continue
        head = f"{column.name} ({column.unit})" if column.unit else column.name
        cells = [cell_text(kind.cells[column.name], kind.valid, column.places) for kind in kinds]
        rows.append([head, *cells])
    note = "Mean ± half of the 95 % confidence interval (Student's t) over the runs that count.\n"
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n\n" + note


def comma_separated(kinds: Sequence[Kind]) -> str:
    """One row per kind and figure."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "figure", "unit", "n", "mean", "half_width_95", "least", "greatest"])
    for kind in kinds:
        for column in COLUMNS:
            cell = kind.cells[column.name]
            numbers = [cell.mean, cell.half_width, cell.least, cell.greatest]
            writer.writerow([kind.name, column.name, column.unit, cell.n, *numbers])
    return out.getvalue()
