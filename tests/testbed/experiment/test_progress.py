"""What a person at the terminal sees, and what a log gets."""

from __future__ import annotations

import io

from rich.console import Console

from steerline_testbed.experiment.progress import Moment, Picture, Plain
from steerline_testbed.experiment.series import DecisionRow, Sample

STALLED = Sample(83.0, 1, "REBUFFERING", 14.0, 480, stall_count=2, stall_s=3.0)
MOVED = DecisionRow(
    82.0, "steer", session_id="video1-1", from_line="line1", to_line="line2", reason="14 s left [bound 20 s]"
)


def at(time_s: float) -> Moment:
    """A moment of a run with one player and two lines."""
    return Moment("single, 20 downloads", time_s, 200.0, [STALLED], {"line1": 1.0, "line2": 0.4}, 20, 45e6)


def test_plain_lines_come_each_ten_seconds() -> None:
    """Not twice a second; a phase is said once, however much of it is done; brackets in a reason are text."""
    out = io.StringIO()
    plain = Plain(Console(file=out, width=200))
    for done in range(3):
        plain.phase(f"encoding 480p: {done} %")
    for half in range(41):
        plain.moment(at(half / 2))
    plain.decided(MOVED)
    lines = out.getvalue().splitlines()
    assert lines[0] == "encoding 480p: 0 %" and len(lines) == 5
    assert "14.0 s buffered" in lines[1] and "100 40" in lines[1]
    assert "14 s left [bound 20 s]" in lines[4]


def test_a_second_run_is_shown_from_its_beginning() -> None:
    """The clock goes back to 0 between the runs of a demo."""
    out = io.StringIO()
    plain = Plain(Console(file=out, width=200))
    plain.moment(at(190.0))
    plain.moment(at(0.0))
    plain.moment(at(0.5))
    assert [line.split("]")[1].split("/")[0].strip() for line in out.getvalue().splitlines()] == ["190", "0"]


def test_the_picture_shows_buffers_lines_and_decisions() -> None:
    """On a terminal, as one picture that is drawn anew."""
    out = io.StringIO()
    with Picture(Console(file=out, force_terminal=True, width=120)) as picture:
        picture.phase("building [the] network")
        picture.decided(MOVED)
        picture.moment(at(83.0))
    shown = out.getvalue()
    assert "video1-1" in shown and "rebuffering" in shown and "line2" in shown and "45.0 Mbps" in shown
