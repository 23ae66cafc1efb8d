"""Whether a move loses anything: numbered UDP and a TCP stream, moved from line to line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from steerline_testbed.measure.lab import Say, lab_settings, open_lab
from steerline_testbed.measure.paced import account

PORT = 7001
RATE = 250.0
SIZE = 400
STREAM_BPS = 1_000_000.0
COUNTERS = (
    "RetransSegs",
    "TCPSACKReorder",
    "TCPTSReorder",
    "TCPDSACKRecv",
    "TCPFastRetrans",
    "TCPLossProbes",
)


def measure(count: int, flows: int, seed: int, gap_s: float, say: Say) -> dict[str, Any]:
    """`count` moves of one session's flows under `flows` downloads, and as long a time without moves."""
    settings = lab_settings("round-robin", flows, seed)
    with open_lab(settings, say) as lab:
        out = lab.network.directory / "moves.jsonl"
        lab.pace(rate=RATE, size=SIZE, until_s=24 * 3600, stream_bps=STREAM_BPS)
        lab.receive("viewer1", [PORT], stream=PORT)
        _, socket = lab.reporter("viewer1", protocols=(6, 17))
        time.sleep(3)
        rest_s = min(30.0, count * gap_s)
        say(f"{rest_s:.0f} s without moves, to compare")
        before = lab.counters("video-server")
        time.sleep(rest_s)
        calm = lab.counters("video-server")
        started = time.monotonic()
        worker = lab.worker("moves", socket, PORT, count, gap_s, out)
        lab.wait(worker, lambda: f"{_lines(out)} of {count} moves")
        time.sleep(1.0)
        moved_s = time.monotonic() - started
        after = lab.counters("video-server")
        came = account(lab.arrivals("viewer1").get(PORT, []))
        return {
            "moves": _lines(out),
            "flows": flows,
            "seed": seed,
            "udp": {
                "packets_per_s": RATE,
                "sent": came.sent,
                "lost": came.lost,
                "doubled": came.doubled,
                "reordered": came.reordered,
                "longest_gap_ms": round(came.longest_gap_s * 1000, 2),
            },
            "tcp_while_moving": _delta(calm, after, moved_s),
            "tcp_at_rest": _delta(before, calm, rest_s),
        }


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def _delta(before: Any, after: Any, seconds: float) -> dict[str, float]:
    counts = {name: after.get(name, 0) - before.get(name, 0) for name in COUNTERS}
    return {"seconds": round(seconds, 1), "segments": after["OutSegs"] - before["OutSegs"], **counts}
