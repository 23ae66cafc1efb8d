"""The demo: the same customers twice, with a strategy that lets the video starve and one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steerline_testbed.experiment import compare
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.clock import utc_text
from steerline_testbed.experiment.compare import Result
from steerline_testbed.experiment.progress import Progress
from steerline_testbed.experiment.report import write_report
from steerline_testbed.experiment.run import Order, execute
from steerline_testbed.experiment.settings import RunSettings

STRATEGIES = ("single", "buffer-threshold")


PICTURE_EVERY_S = 10.0


def picture_times(duration_s: float) -> tuple[float, ...]:
    """When screenshots are taken: often enough that one falls into a stall. The last is of the end."""
    count = int((duration_s - 2) / PICTURE_EVERY_S)
    return (*(PICTURE_EVERY_S * number for number in range(1, count + 1)), duration_s - 2)


def run_demo(
    base: RunSettings, strategies: Sequence[str], out: Path, command: str, progress: Progress
) -> list[Result]:
    """Runs each strategy with the same settings, then writes `out/report.html`.

    Replaces what an earlier demo left in `out`. Raises TestbedError.
    """
    results: list[Result] = []
    for number, strategy in enumerate(strategies, start=1):
        settings = base.model_copy(update={"strategy": strategy})
        progress.phase(f"run {number} of {len(strategies)}: {strategy}")
        execute(Order(settings, out / strategy, force=True), progress)
        results.append(Result.load(strategy, out / strategy))
    progress.phase("drawing the report")
    write_report(
        results, out / "report.html", "A starving player is rescued by the network", command, utc_text()
    )
    replace_file(out / "table.md", table_markdown(results).encode())
    return results


def table_markdown(results: Sequence[Result]) -> str:
    """The table of the demo in Markdown."""
    head, *rows = compare.table(results)
    lines = [head, ["---"] + ["---:"] * len(results), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def table_text(results: Sequence[Result]) -> str:
    """The table of the demo as aligned text."""
    rows = compare.table(results)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
