"""Plots and a table that put several runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steerline_testbed.experiment import figure_style as look
from steerline_testbed.experiment import figures, plots, tables
from steerline_testbed.experiment.results import finished
from steerline_testbed.experiment.series import Recording
from steerline_testbed.experiment.words import mbps, percent, ratio, seconds

COLOURS = (look.RED, look.BLUE, look.GREEN, look.PURPLE, look.ORANGE)
DASHES = ("-", "-", "--", "-.", ":")


@dataclass(frozen=True, slots=True)
class Result:
    """One finished run, read back from its folder."""

    name: str
    summary: Mapping[str, Any]
    recording: Recording

    @classmethod
    def load(cls, name: str, folder: Path) -> Result:
        """Raises FileNotFoundError where there is no complete run."""
        summary = finished(folder)
        if summary is None:
            raise FileNotFoundError(f"{folder} holds no complete run")
        return cls(name, summary, tables.read_tables(folder / "series"))


def buffers_figure(results: Sequence[Result]) -> Any:
    """The buffer of the first video of each run, with stalls as bands of its colour."""
    figure, axis = look.pyplot.subplots(figsize=(9, 4.4), layout="constrained")
    end_s = max(one.summary["duration_s"] for one in results)
    for index, one in enumerate(results):
        samples = one.recording.of_video(1)
        colour = COLOURS[index % len(COLOURS)]
        axis.plot(
            [sample.time_s for sample in samples],
            [sample.buffer_s for sample in samples],
            color=colour,
            ls=DASHES[index % len(DASHES)],
            lw=1.8,
            label=one.name,
        )
        stalled = plots.stalls(samples, end_s)
        for number, (begin_s, until_s) in enumerate(stalled):
            label = f"{one.name}: stalled" if number == 0 else None
            axis.axvspan(begin_s, until_s, color=colour, alpha=0.22, lw=0, label=label)
        steers = [row for row in one.recording.decisions if row.kind == "steer" and row.session_id]
        if steers:
            axis.scatter(
                [row.time_s for row in steers],
                [59.5] * len(steers),
                marker="v",
                s=36,
                color=look.GREEN,
                zorder=5,
                label=f"{one.name}: video steered",
            )
    plots.thresholds(axis)
    plots.mark_traffic(axis, results[0].summary)
    axis.set(xlim=(0, end_s), ylim=(-1.5, 62), xlabel="time since the start of the player (s)")
    axis.set_ylabel("buffered playtime (s)")
    axis.set_title("Buffered playtime")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=4)
    return figure


def lines_figure(results: Sequence[Result]) -> Any:
    """Used bandwidth per line of each run, on one scale."""
    figure, axes = look.pyplot.subplots(
        1, len(results), figsize=(9, 3.8), layout="constrained", sharey=True, squeeze=False
    )
    for axis, one in zip(axes[0], results, strict=True):
        plots.stack_lines(axis, one.summary, one.recording)
        axis.set_title(f"{one.name}: ρ = {ratio(one.summary['lines']['rho'])}")
        axis.set_xlabel("time (s)")
    axes[0][0].set_ylabel("used bandwidth (Mbps)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


def cdf_figure(results: Sequence[Result]) -> Any:
    """The share of time at or below each level of the buffer, from the start of the cross traffic."""
    figure, axis = look.pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for index, one in enumerate(results):
        begin_s, end_s = one.summary["settings"]["traffic_start_s"], one.summary["duration_s"]
        levels, shares = plots.cdf(figures.spans(one.recording.of_video(1), begin_s, end_s))
        axis.step(
            levels,
            shares,
            where="post",
            color=COLOURS[index % len(COLOURS)],
            ls=DASHES[index % len(DASHES)],
            lw=1.8,
            label=one.name,
        )
    axis.set(xlim=(0, 60), ylim=(0, 1.02), xlabel="buffered playtime (s)", ylabel="share of time at or below")
    axis.set_title("Distribution of the buffer while the others download")
    axis.legend(loc="upper left")
    return figure


def downloads_figure(results: Sequence[Result]) -> Any:
    """What each download got, from the slowest to the fastest."""
    figure, axis = look.pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for index, one in enumerate(results):
        rates = sorted(rate / 1e6 for rate in one.summary["downloads"]["rates_bps"])
        axis.plot(
            range(1, len(rates) + 1),
            rates,
            marker="os^Dv"[index % 5],
            ms=4,
            lw=1,
            color=COLOURS[index % len(COLOURS)],
            label=one.name,
        )
    axis.set(xlabel="downloads, slowest first", ylabel="rate over its own time (Mbps)")
    axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_title("What the downloads got")
    axis.legend(loc="upper left")
    return figure


Row = tuple[str, Callable[[Mapping[str, Any]], str]]


def _first(part: str, name: str, words: Callable[[float | None], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda summary: words(summary["videos"][0][part][name]) if summary["videos"] else "–"


def _stalls(summary: Mapping[str, Any]) -> str:
    if not summary["videos"]:
        return "–"
    play = summary["videos"][0]["play"]
    return f"{play['stall_count']}, {play['stall_s']:.1f} s in all" if play["stall_count"] else "none"


ROWS: Sequence[Row] = (
    ("stalls", _stalls),
    ("time at 480p", _first("play", "share_at_480p_of_wall", percent)),
    ("start-up delay", _first("play", "start_up_delay_s", seconds)),
    ("buffer at least 50 s", _first("buffer", "share_at_least_50_s", percent)),
    ("buffer below 20 s", _first("buffer", "share_below_20_s", percent)),
    ("least buffer once full", _first("buffer", "minimum_s", seconds)),
    ("used bandwidth, rho", lambda summary: ratio(summary["lines"]["rho"])),
    ("rho, all downloads running", lambda summary: ratio(summary["lines"]["rho_all_downloads_running"])),
    ("downloads: mean", lambda summary: mbps(summary["downloads"]["mean_bps"])),
    ("downloads: slowest", lambda summary: mbps(summary["downloads"]["slowest_bps"])),
)


def table(results: Sequence[Result]) -> list[list[str]]:
    """The figures of each run as texts: a head of names, then a row per figure."""
    head = ["", *(one.name for one in results)]
    return [head, *([name, *(words(one.summary) for one in results)] for name, words in ROWS)]
