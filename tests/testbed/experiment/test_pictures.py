"""Which screenshots tell a run's story."""

from __future__ import annotations

from pathlib import Path

from steerline_testbed.experiment import pictures
from steerline_testbed.experiment.series import Sample


def run_of(states: dict[float, tuple[str, float]], raw: Path) -> list[pictures.Shot]:
    """A screenshot at each of these times, whose player was in that state with that buffer."""
    for time_s in states:
        (raw / f"player1-{time_s:03.0f}s.jpg").write_bytes(b"picture")
    samples = [Sample(time_s, 1, state, buffer_s, 480) for time_s, (state, buffer_s) in states.items()]
    return pictures.find_shots(raw, samples)


def test_the_first_stall_is_shown(tmp_path: Path) -> None:
    """Middle, first stall of the busy time, end, in order of time; how the buffer filled is no bad moment."""
    shots = run_of(
        {
            10: ("REBUFFERING", 0.0),
            50: ("PLAYING", 5.0),
            70: ("REBUFFERING", 0.0),
            90: ("REBUFFERING", 0.0),
            98: ("PLAYING", 3.0),
        },
        tmp_path,
    )
    chosen = pictures.choose(shots, 30.0, 100.0)
    assert [one.time_s for one in chosen] == [50, 70, 98]
    assert chosen[1].words == "70 s: frozen, 480p, 0 s buffered"


def test_without_a_stall_the_least_buffer_is_shown(tmp_path: Path) -> None:
    """Where nothing froze, the moment with the least buffer is the worst; nothing is shown twice."""
    shots = run_of({10: ("PLAYING", 2.0), 40: ("PLAYING", 30.0), 98: ("PLAYING", 50.0)}, tmp_path)
    assert [one.time_s for one in pictures.choose(shots, 30.0, 100.0)] == [40, 98]


def test_no_pictures_are_no_trouble(tmp_path: Path) -> None:
    """A headless run has none, and a run that never played none that could be told of."""
    (tmp_path / "player1-010s.jpg").write_bytes(b"picture")
    assert pictures.find_shots(tmp_path, []) == []
    assert pictures.choose([], 30.0, 100.0) == []
