"""One HTML file that shows what the runs of a demo were: no other file, no network, light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from steerline_testbed.experiment import compare
from steerline_testbed.experiment import figure_style as look
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.compare import Result
from steerline_testbed.experiment.pictures import Shot, choose, find_shots
from steerline_testbed.experiment.series import DecisionRow
from steerline_testbed.experiment.words import percent, ratio, seconds

MOST_DECISIONS = 25
# What a reader must know of a strategy to read its curves; one that is not here is shown without words.
STRATEGIES: Mapping[str, str] = {
    "single": "puts everything on the first line, as an access network does that knows nothing of its "
    "customers' applications and keeps the other lines for later. All share one line; TCP gives the video "
    "no more than any download.",
    "random": "puts each new flow on a line drawn at random, and never moves it.",
    "round-robin": "puts each new flow on the next line in turn, and never moves it. Every line is full, but "
    "the video has only its share of one.",
    "buffer-threshold": "listens to the player. With fewer than 20 s of video left it moves the video to the "
    "line where it gets most, lets no new flow onto that line, and moves downloads off it until the video "
    "has what it needs. From 35 s on that line takes downloads again, as many as leave the video its rate: "
    "every line is full, and the buffer stays full too. A player that starts has few seconds left as well, "
    "so it is looked after from its first report.",
}


def write_report(results: Sequence[Result], path: Path, title: str, command: str, made_at: str) -> None:
    """Writes the report, whole or not at all. `results` name the folders beside it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    text = environment.get_template("report.html.j2").render(
        **_facts(results, path.parent), svg=_drawings(results), title=title, command=command, made_at=made_at
    )
    replace_file(path, text.encode())


def _facts(results: Sequence[Result], folder: Path) -> dict[str, Any]:
    pictures = [(one, find_shots(folder / one.name / "raw", one.recording.of_video(1))) for one in results]
    summaries = [one.summary for one in results]
    settings = summaries[0]["settings"]
    rates: Sequence[float] = settings["line_mbps"]
    seen = sorted({name for one in summaries for name in one["congestion_control"]["seen"]})
    loads = [one["cpu_share"] for one in summaries if one["cpu_share"] is not None]
    return {
        "results": results,
        "flows": settings["flows"],
        "lines": len(rates),
        "line_rate": f"{rates[0]:g} Mbps" if len(set(rates)) == 1 else "different rates",
        "duration": f"{summaries[0]['duration_s']:.0f}",
        "verdicts": [_verdict(one) for one in results],
        "warnings": [
            f"The run of {one.name} does not count: {'; '.join(one.summary['invalid_because'])}"
            for one in results
            if not one.summary["valid"]
        ],
        "table": compare.table(results),
        "strategies": [(one.name, STRATEGIES[one.name]) for one in results if one.name in STRATEGIES],
        "captions": {"buffers": _buffers_caption(results), "lines": _lines_caption(results)},
        "decisions": [_decisions(one) for one in results],
        "player": _player(summaries[0]),
        "shots": [(one.name, _chosen(one, shots)) for one, shots in pictures if shots],
        "congestion_control": ", ".join(seen) or "not seen",
        "cpu": " and ".join(percent(load) for load in loads) or "–",
    }


def _chosen(one: Result, shots: Sequence[Shot]) -> list[Shot]:
    return choose(shots, one.summary["settings"]["traffic_start_s"], one.summary["duration_s"])


def _player(summary: Mapping[str, Any]) -> str:
    browser: Mapping[str, Any] | None = summary.get("browser")
    if browser is None:
        return "The player is Steerline's own, without a screen."
    version = str(browser["version"]).rpartition(" ")[2]
    return (
        f"The player is a page ({browser['page']}) in a real {str(browser['name']).capitalize()} {version}. "
        "Steerline's extension sees what the page's video does, and reports it through the program beside "
        "the browser."
    )


def _verdict(one: Result) -> dict[str, Any]:
    play = one.summary["videos"][0]["play"]
    if play["start_up_delay_s"] is None:
        return {"name": one.name, "good": False, "verdict": "never played", "detail": play["reason"]}
    count: int = play["stall_count"]
    at_top = percent(play["share_at_480p_of_wall"])
    if count == 0:
        return {
            "name": one.name,
            "good": True,
            "verdict": "no stall",
            "detail": f"at 480p {at_top} of the time; never fewer than "
            f"{seconds(one.summary['videos'][0]['buffer']['minimum_s'])} left once the buffer was full",
        }
    frozen = f"frozen for {play['stall_s']:.0f} s"
    times = "once" if count == 1 else f"{count} times"
    detail = f"stalled {times}, first at {seconds(play['first_stall_at_s'])}; at 480p {at_top} of the time"
    return {"name": one.name, "good": False, "verdict": frozen, "detail": detail}


def _buffers_caption(results: Sequence[Result]) -> str:
    parts: list[str] = []
    for one in results:
        buffer: Mapping[str, Any] = one.summary["videos"][0]["buffer"]
        empty = buffer["first_empty_at_s"]
        below = percent(buffer["share_below_20_s"])
        end = f"empty for the first time at {seconds(empty)}" if empty is not None else "never empty"
        parts.append(f"{one.name}: {end}, below 20 s for {below} of the time.")
    return " ".join(parts)


def _lines_caption(results: Sequence[Result]) -> str:
    parts = [f"{one.name} uses {ratio(one.summary['lines']['rho'])}" for one in results]
    return "Of what the lines could carry, " + ", ".join(parts) + "."


def _decisions(one: Result) -> dict[str, Any]:
    rows = grouped([row for row in one.recording.decisions if row.session_id])
    return {
        "name": one.name,
        "rows": rows[:MOST_DECISIONS],
        "more": max(0, len(rows) - MOST_DECISIONS),
        "folder": one.name,
    }


def grouped(rows: Sequence[DecisionRow]) -> list[dict[str, Any]]:
    """Decisions in a row that say the same become one, with how often it was taken."""
    found: list[dict[str, Any]] = []
    for row in rows:
        same = (row.kind, row.from_line, row.to_line, row.reason)
        if found and found[-1]["same"] == same:
            found[-1]["times"] += 1
        else:
            found.append({"same": same, "times": 1, "row": row})
    return found


def _drawings(results: Sequence[Result]) -> dict[str, str]:
    drawers = {
        "buffers": compare.buffers_figure,
        "lines": compare.lines_figure,
        "cdf": compare.cdf_figure,
        "downloads": compare.downloads_figure,
    }
    found: dict[str, str] = {}
    for name, drawer in drawers.items():
        with look.style():
            figure = drawer(results)
            found[name] = inline_svg(look.svg(figure, name).decode(), name)
            look.pyplot.close(figure)
    return found


def inline_svg(text: str, name: str) -> str:
    """An SVG file as an element of a page: without its head, in the page's ink, its ids its own."""
    body = text[text.index("<svg") :].replace(look.INK, "currentColor")
    # Without a size of its own the picture takes the width of its column.
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    rest = re.sub(r'(\sid=")', rf"\1{name}-", rest)
    rest = re.sub(r"((?:xlink:)?href=\"#|url\(#)", rf"\1{name}-", rest)
    return f'{head} role="img" aria-label="{name}">{rest}'
