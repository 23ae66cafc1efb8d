"""Series made by hand, with answers that one can work out on paper."""

from __future__ import annotations

from steerline_testbed.experiment.series import (
    DecisionRow,
    DownloadLife,
    DownloadSample,
    LineSample,
    Recording,
    Sample,
)
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.experiment.summary import Circumstances

FLOW = "tcp 198.18.1.11:4000 - 198.19.0.1:80"


def film(buffers: list[tuple[float, float]], state: str = "PLAYING", height: int = 480) -> list[Sample]:
    """Samples of video 1 at (time, buffer)."""
    return [Sample(time_s, 1, state, buffer_s, height) for time_s, buffer_s in buffers]


def starving_run(end_s: float = 200.0, traffic_start_s: float = 30.0) -> Recording:
    """A buffer that fills, falls from the start of the traffic on, is empty at 110 s, and stalls."""
    recording = Recording()
    stalled = 0.0
    for half in range(int(end_s * 2)):
        time_s = half / 2
        if time_s < 1:
            state, buffer_s = "STARTING", time_s * 2
        elif time_s < traffic_start_s:
            state, buffer_s = "PLAYING", min(54.0, 2 + 2.5 * time_s)
        else:
            buffer_s = max(0.0, 54.0 - 0.675 * (time_s - traffic_start_s))
            state = "PLAYING" if buffer_s > 0 or int(time_s) % 5 < 2 else "REBUFFERING"
        stalled += 0.5 if state == "REBUFFERING" else 0.0
        height = 480 if time_s < 150 else 360
        recording.samples.append(
            Sample(time_s, 1, state, buffer_s, height, 2600.0, -1.0, int(stalled > 0), stalled)
        )
        for number in range(1, 6):
            full_s = max(0.0, time_s - traffic_start_s) if number == 1 else 0.0
            sent = int((full_s * 10e6 + (time_s - full_s) * 0.5e6) / 8)
            recording.lines.append(LineSample(time_s, f"line{number}", sent, int(time_s * 1e4), half))
    for which in range(1, 21):
        start_s = traffic_start_s + which - 1
        recording.lives[which] = DownloadLife(which, start_s)
        recording.downloads += [
            DownloadSample(start_s + second, which, int(second * 450e3 / 8))
            for second in range(int(end_s - start_s) + 1)
        ]
    recording.decisions = [
        DecisionRow(31.0, "steer", "home", "single", "", FLOW, "", "line1", "all on one line"),
        DecisionRow(
            82.0, "steer", "home", "single", "s1", FLOW, "line1", "line2", "14.2 s left, low is 20 s"
        ),
        DecisionRow(95.0, "release", "home", "single", "s1", FLOW, "", "", "35 s reached"),
    ]
    return recording


def settings_of_run(**changes: object) -> RunSettings:
    """Settings that fit `starving_run`."""
    return RunSettings.parse(
        {"strategy": "single", "flows": 20, "duration_s": 200.0, "traffic_start_s": 30.0, **changes}
    )


def circumstances(end_s: float = 200.0, failure: str = "") -> Circumstances:
    """What surrounds `starving_run`."""
    return Circumstances(
        run_id="made-by-hand",
        started_at="2026-01-01T00:00:00+00:00",
        end_s=end_s,
        failure=failure,
        versions={"kernel": "6.1"},
        self_assertion={"passed": True},
        congestion_control_seen={"cubic": 20},
        enforcement={"n": 0, "p50_ms": None, "p99_ms": None, "max_ms": None},
        retransmitted_segments={"video-server": 3},
        cpu_share=0.5,
    )
