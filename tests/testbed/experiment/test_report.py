"""The demo's page: one file that stands alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from steerline_testbed.experiment import demo, report, results
from steerline_testbed.experiment.compare import Result
from steerline_testbed.experiment.series import DecisionRow

from .handmade import circumstances, settings_of_run, starving_run


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Two runs, read back from their folders."""
    out = tmp_path_factory.mktemp("demo")
    for name in ("single", "buffer-threshold"):
        results.write_results(out / name, settings_of_run(strategy=name), starving_run(), circumstances())
    return [Result.load(name, out / name) for name in ("single", "buffer-threshold")]


def test_the_page_stands_alone(two: list[Result], tmp_path: Path) -> None:
    """No other file, no network: every picture is in it, well-formed, and every id is there once."""
    path = tmp_path / "report.html"
    report.write_report(two, path, "A title", "steerline-testbed demo", "2026-01-01")
    text = path.read_text()
    assert not re.search(r'(src|href)="(?!#)', text) and "url(http" not in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        ElementTree.fromstring(drawing)
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert used <= set(ids)


def test_the_page_takes_the_readers_colours(two: list[Result], tmp_path: Path) -> None:
    """Text and axes are drawn in the page's ink, which is light on dark."""
    path = tmp_path / "report.html"
    report.write_report(two, path, "A title", "steerline-testbed demo", "2026-01-01")
    text = path.read_text()
    assert "prefers-color-scheme: dark" in text and "currentColor" in text
    assert "#24292f" not in text


def test_reasons_are_text_and_not_markup(two: list[Result], tmp_path: Path) -> None:
    """What a player or controller wrote cannot become part of the page."""
    path = tmp_path / "report.html"
    report.write_report(two, path, "<script>alert(1)</script>", "x & y", "2026-01-01")
    assert "<script>" not in path.read_text()


def test_the_table_is_aligned_and_has_a_column_per_run(two: list[Result]) -> None:
    """Names at the top, a figure per row."""
    lines = demo.table_text(two).splitlines()
    assert lines[0].split() == ["single", "buffer-threshold"]
    assert any(line.startswith("stalls") and "s in all" in line for line in lines)
    assert demo.table_markdown(two).splitlines()[:2] == [
        "|  | single | buffer-threshold |",
        "| --- | ---: | ---: |",
    ]


def test_series_come_back_as_they_were_written(two: list[Result]) -> None:
    """What is read from Parquet is what was recorded."""
    original = starving_run()
    assert two[0].recording.samples == original.samples
    assert sorted(two[0].recording.lines, key=lambda one: (one.time_s, one.line)) == original.lines
    assert two[0].recording.decisions == original.decisions


def test_a_folder_without_a_complete_run_is_refused(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        Result.load("x", tmp_path)


def test_decisions_that_say_the_same_are_shown_once() -> None:
    """Three equal ones in a row become one, taken three times; a later one stands by itself."""
    keep = [DecisionRow(float(second), "keep", session_id="v", reason="same") for second in range(3)]
    other = DecisionRow(9.0, "steer", session_id="v", to_line="line2")
    found = report.grouped([*keep, other, keep[0]])
    assert [(one["times"], one["row"].kind) for one in found] == [(3, "keep"), (1, "steer"), (1, "keep")]
