"""The measuring itself: samples the lines, follows the records, watches the programs, until the end."""

from __future__ import annotations

import json
import time
from pathlib import Path

from steerline_testbed.experiment import series
from steerline_testbed.experiment.clock import Zero, monotonic_s
from steerline_testbed.experiment.jsons import json_lines, mapping, number
from steerline_testbed.experiment.progress import Moment, Progress
from steerline_testbed.experiment.series import DecisionRow, LineSample, Recording, Sample
from steerline_testbed.experiment.stage import Stage
from steerline_testbed.experiment.tail import Tail

STEP_S = 0.5
# The last samples may be this late and still belong to the run.
AFTER_END_S = 0.05


class Measurement:
    """One run's measuring. What was recorded stays in `recording` and `raw`, whatever ends it."""

    def __init__(self, stage: Stage, zero: Zero, progress: Progress) -> None:
        self.recording = Recording()
        self._stage = stage
        self._zero = zero
        self._progress = progress
        settings = stage.settings
        self._players = {
            video: Tail(stage.raw / f"player{video}.jsonl") for video in range(1, len(settings.seats) + 1)
        }
        self._downloads = Tail(stage.raw / "downloads.jsonl")
        self._decisions = Tail(stage.raw / "decisions.jsonl")
        self._latest: dict[int, Sample] = {}
        self._rates: list[tuple[float, int]] = [(0.0, 0)]
        self._alive = 0

    def now_s(self) -> float:
        """Seconds since time zero."""
        return self._zero.relative(monotonic_s())

    def run(self, until_s: float) -> None:
        """Measures until `until_s`. Raises ExperimentError when something that is needed ends before."""
        step = 0
        with (self._stage.raw / "lines.jsonl").open("a", encoding="utf-8") as out:
            while True:
                now_s = self.now_s()
                for sample in self.sample_lines():
                    row = {"time_s": sample.time_s, "line": sample.line, "down_bytes": sample.down_bytes}
                    out.write(
                        json.dumps(row | {"up_bytes": sample.up_bytes, "down_drops": sample.down_drops})
                        + "\n"
                    )
                out.flush()
                self._stage.assert_alive()
                self._show(now_s)
                if now_s >= until_s:
                    return
                step += 1
                due_s = min(step * STEP_S, until_s)
                time.sleep(max(0.0, due_s - self.now_s()))

    def sample_lines(self) -> list[LineSample]:
        """Reads the counters of all lines, and keeps them."""
        found = [
            LineSample(
                time_s=self.now_s(),
                line=name,
                down_bytes=counters.down_bytes,
                up_bytes=counters.up_bytes,
                down_drops=counters.down_drops,
                up_drops=counters.up_drops,
            )
            for name, counters in self._stage.network.line_counters().items()
        ]
        self.recording.lines += found
        return found

    def _show(self, now_s: float) -> None:
        for video, tail in self._players.items():
            samples = series.read_player(tail.read(), video, self._zero)
            if samples:
                self._latest[video] = samples[-1]
        for row in series.read_decisions(self._decisions.read(), self._zero):
            if _is_move(row):
                self._progress.decided(row)
        for entry in self._downloads.read():
            counts = mapping(entry.get("bytes"))
            if entry.get("kind") == "bytes" and counts is not None:
                self._alive = len(counts)
                total = sum(int(number(count)) for count in counts.values())
                self._rates = [*self._rates[-3:], (self._zero.relative(number(entry.get("time_s"))), total)]
        (t0, b0), (t1, b1) = self._rates[0], self._rates[-1]
        self._progress.moment(
            Moment(
                title=f"{self._stage.settings.strategy}, {self._stage.settings.flows} downloads",
                time_s=now_s,
                duration_s=self._stage.settings.duration_s,
                players=[self._latest[video] for video in sorted(self._latest)],
                line_share=self._line_share(),
                downloads=self._alive,
                download_bps=(b1 - b0) * 8 / (t1 - t0) if t1 > t0 else 0.0,
            )
        )

    def _line_share(self) -> dict[str, float]:
        capacity = self._stage.settings.capacity_bps
        count = len(capacity)
        window = self.recording.lines[-5 * count :]
        shares: dict[str, float] = {}
        for name, bps in capacity.items():
            mine = [one for one in window if one.line == name]
            length_s = mine[-1].time_s - mine[0].time_s if len(mine) > 1 else 0.0
            sent = mine[-1].down_bytes - mine[0].down_bytes if mine else 0
            shares[name] = max(0.0, sent * 8 / length_s / bps) if length_s > 0 else 0.0
        return shares


def _is_move(row: DecisionRow) -> bool:
    return row.kind != "keep" and (bool(row.session_id) or row.from_line != row.to_line)


def read_records(raw: Path, videos: int, zero: Zero, end_s: float, recording: Recording) -> None:
    """Adds what the programs wrote below `raw` to a recording, up to `end_s`.

    What comes later is the tear-down: players that quit, and what the controller makes of it.
    """
    for video in range(1, videos + 1):
        recording.samples += series.read_player(json_lines(raw / f"player{video}.jsonl"), video, zero)
    series.read_downloads(json_lines(raw / "downloads.jsonl"), zero, recording)
    recording.pages += series.read_pages(json_lines(raw / "browsing.jsonl"), zero)
    recording.decisions += series.read_decisions(json_lines(raw / "decisions.jsonl"), zero)
    latest_s = end_s + AFTER_END_S
    recording.samples = [one for one in recording.samples if one.time_s <= latest_s]
    recording.downloads = [one for one in recording.downloads if one.time_s <= latest_s]
    recording.pages = [one for one in recording.pages if one.time_s <= latest_s]
    recording.decisions = [one for one in recording.decisions if one.time_s <= latest_s]
