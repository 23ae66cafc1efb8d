"""The plots of one run: buffered playtime, used bandwidth per line, and the buffer's distribution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steerline_testbed.experiment import figure_style as look
from steerline_testbed.experiment import figures, traffic_figures
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.series import DecisionRow, Recording, Sample

LOW_S, HIGH_S = 20.0, 35.0
BIN_S = 2.0


def write_plots(summary: Mapping[str, Any], recording: Recording, folder: Path) -> None:
    """Writes `buffer`, `lines` and `cdf` as PNG and SVG, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in draw(summary, recording):
        replace_file(folder / f"{name}.png", look.png(figure))
        replace_file(folder / f"{name}.svg", look.svg(figure, f"{summary['run_id']}-{name}"))
        look.pyplot.close(figure)


def draw(summary: Mapping[str, Any], recording: Recording) -> Iterator[tuple[str, Any]]:
    """Each plot's name and figure. The caller closes the figures."""
    drawers: Mapping[str, Callable[[Mapping[str, Any], Recording], Any]] = {
        "buffer": buffer_figure,
        "lines": lines_figure,
        "cdf": cdf_figure,
    }
    for name, drawer in drawers.items():
        with look.style():
            yield name, drawer(summary, recording)


def title(summary: Mapping[str, Any]) -> str:
    """What the run was, in a few words."""
    settings = summary["settings"]
    nat = ", behind NAT" if settings["nat"] else ""
    partial = " (partial run)" if summary["state"] == "partial" else ""
    return f"{settings['strategy']}, {settings['flows']} downloads{nat}{partial}"


def buffer_figure(summary: Mapping[str, Any], recording: Recording) -> Any:
    """Buffered playtime of each video, with thresholds, stalls, qualities and the session's moves."""
    videos = [one["video"] for one in summary["videos"]]
    figure, axis = look.pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    end_s = summary["duration_s"]
    for index, video in enumerate(videos):
        samples = recording.of_video(video)
        if not samples:
            continue
        colour = look.LINE_COLOURS[index % len(look.LINE_COLOURS)]
        label = "buffered playtime" if len(videos) == 1 else f"video {video}"
        axis.plot(
            [one.time_s for one in samples],
            [one.buffer_s for one in samples],
            color=colour,
            lw=1.6,
            label=label,
        )
        if len(videos) == 1:
            _shade(axis, samples, end_s)
    thresholds(axis)
    _mark_decisions(axis, recording.decisions)
    mark_traffic(axis, summary)
    axis.set(xlim=(0, end_s), ylim=(-1.5, 62), xlabel="time since the start of the player (s)")
    axis.set_ylabel("buffered playtime (s)")
    axis.set_title(f"Buffered playtime: {title(summary)}")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=6)
    return figure


def thresholds(axis: Any) -> None:
    """The two thresholds of the default settings, with their names."""
    for bound_s, name in ((LOW_S, "act below"), (HIGH_S, "enough from")):
        axis.axhline(bound_s, color=look.GRID, lw=1, ls="--")
        # Beside the axes, where no curve can run through the words.
        where = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "center", "fontsize": 8}
        axis.annotate(f"{name}\n{bound_s:.0f} s", (1.008, bound_s), annotation_clip=False, **where)


def stalls(samples: Sequence[Sample], end_s: float) -> list[tuple[float, float]]:
    """Begin and end of each stall after the first picture."""
    began = next((one.time_s for one in samples if one.state == "PLAYING"), end_s)
    pieces = figures.spans(figures.starvation(samples), began, end_s)
    return _joined([one for one in pieces if one.sample.state == "REBUFFERING"])


def _shade(axis: Any, samples: Sequence[Sample], end_s: float) -> None:
    """Stalls as full-height bands, time at a lower quality as a strip at the foot."""
    for index, (begin_s, until_s) in enumerate(stalls(samples, end_s)):
        label = "stall" if index == 0 else None
        axis.axvspan(begin_s, until_s, color=look.RED, alpha=0.28, lw=0, label=label)
    low = [one for one in figures.spans(samples, 0.0, end_s) if 0 < one.sample.height < figures.TOP_HEIGHT]
    for index, (begin_s, until_s) in enumerate(_joined(low)):
        label = "at 360p" if index == 0 else None
        axis.axvspan(begin_s, until_s, ymax=0.035, color=look.ORANGE, lw=0, label=label)


def _joined(pieces: Sequence[figures.Span]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for one in pieces:
        if found and one.begin_s - found[-1][1] < 0.01:
            found[-1] = (found[-1][0], one.end_s)
        else:
            found.append((one.begin_s, one.end_s))
    return found


def _mark_decisions(axis: Any, decisions: Sequence[DecisionRow]) -> None:
    """The session's own moves; those of single best-effort flows would hide everything."""
    for kind, marker, colour in (("steer", "v", look.GREEN), ("release", "^", look.PURPLE)):
        times = [row.time_s for row in decisions if row.kind == kind and row.session_id]
        if times:
            axis.scatter(
                times, [59.5] * len(times), marker=marker, s=36, color=colour, zorder=5,
                label="session steered" if kind == "steer" else "session released",
            )  # fmt: skip


def mark_traffic(axis: Any, summary: Mapping[str, Any], height: float = 0.03) -> None:
    """A dotted line where the cross traffic starts."""
    start_s = summary["settings"]["traffic_start_s"]
    if summary["settings"]["flows"]:
        axis.axvline(start_s, color=look.INK, lw=1, ls=":")
        axis.annotate(
            " cross traffic starts",
            (start_s, height),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            va="bottom",
        )


def lines_figure(summary: Mapping[str, Any], recording: Recording) -> Any:
    """Used bandwidth of each line, stacked, against what all lines could carry."""
    figure, axis = look.pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    stack_lines(axis, summary, recording)
    rho = summary["lines"]["rho"]
    shown = "" if rho is None else f", ρ = {rho:.2f}"
    axis.set_xlabel("time since the start of the player (s)")
    axis.set_ylabel("used bandwidth, download direction (Mbps)")
    axis.set_title(f"Used bandwidth per line: {title(summary)}{shown}")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=6)
    return figure


def stack_lines(axis: Any, summary: Mapping[str, Any], recording: Recording) -> None:
    """The lines' rates in bins of 2 s, one on the other, with the capacity of all."""
    capacity: Mapping[str, int] = summary["lines"]["capacity_bps"]
    end_s = summary["duration_s"]
    edges = [BIN_S * step for step in range(int(end_s / BIN_S) + 1)]
    stacks = [
        rates_mbps([(one.time_s, one.down_bytes) for one in recording.lines if one.line == name], edges)
        for name in capacity
    ]
    if len(edges) > 1 and stacks:
        middles = [edge + BIN_S / 2 for edge in edges[:-1]]
        colours = [look.LINE_COLOURS[index % len(look.LINE_COLOURS)] for index in range(len(stacks))]
        axis.stackplot(middles, stacks, labels=list(capacity), colors=colours, alpha=0.85, lw=0)
    total = sum(capacity.values()) / 1e6
    axis.axhline(total, color=look.INK, lw=1.2, ls="--", label=f"capacity, {total:g} Mbps")
    mark_traffic(axis, summary, height=0.93)
    axis.set(xlim=(0, end_s), ylim=(0, total * 1.12))


def rates_mbps(points: Sequence[tuple[float, int]], edges: Sequence[float]) -> list[float]:
    """The rate of a running byte counter in each bin between two edges, in Mbps."""
    ordered = sorted(points)
    found: list[float] = []
    first = 0
    for begin_s, end_s in itertools.pairwise(edges):
        # Only the points around the bin: the counter is read twice a second, for minutes.
        while first + 1 < len(ordered) and ordered[first + 1][0] <= begin_s:
            first += 1
        last = first
        while last < len(ordered) and ordered[last][0] < end_s:
            last += 1
        near = ordered[first : last + 1]
        found.append(traffic_figures.bytes_between(near, begin_s, end_s) * 8 / (end_s - begin_s) / 1e6)
    return found


def cdf_figure(summary: Mapping[str, Any], recording: Recording) -> Any:
    """The share of time for which the buffer held at most so much, from the start of the cross traffic."""
    figure, axis = look.pyplot.subplots(figsize=(5.6, 4.2), layout="constrained")
    for index, one in enumerate(summary["videos"]):
        begin_s, end_s = summary["settings"]["traffic_start_s"], summary["duration_s"]
        levels, shares = cdf(figures.spans(recording.of_video(one["video"]), begin_s, end_s))
        if levels:
            colour = look.LINE_COLOURS[index % len(look.LINE_COLOURS)]
            axis.step(levels, shares, where="post", color=colour, lw=1.6, label=f"video {one['video']}")
    for bound_s in (LOW_S, HIGH_S):
        axis.axvline(bound_s, color=look.GRID, lw=1, ls="--")
    axis.set(xlim=(0, 60), ylim=(0, 1), xlabel="buffered playtime (s)", ylabel="share of time at or below")
    axis.set_title(f"CDF of the buffer: {title(summary)}", fontsize=10)
    if len(summary["videos"]) > 1:
        axis.legend(loc="upper left")
    return figure


def cdf(pieces: Sequence[figures.Span]) -> tuple[list[float], list[float]]:
    """Levels and the share of time at or below each; from 0 to 60 s."""
    total = sum(one.length_s for one in pieces)
    if total <= 0:
        return [], []
    levels: list[float] = [0.0]
    shares: list[float] = [0.0]
    passed = 0.0
    for one in sorted(pieces, key=lambda piece: piece.sample.buffer_s):
        passed += one.length_s
        levels.append(one.sample.buffer_s)
        shares.append(passed / total)
    return [*levels, 60.0], [*shares, 1.0]
