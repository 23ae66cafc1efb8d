"""Measures with the same film, in turn: a browser without an extension, with an empty one, with ours."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.agent.station import Station
from tests.extension.browser import build_extension

from . import film
from .runs import KINDS, Run, run

MOST_CPU = 0.01
MOST_MB = 10.0


def measure(folder: Path, station: Station, seconds: float, repeats: int) -> list[Run]:
    film.make(folder, int(seconds * 2) + 60)
    extension = build_extension(folder / "extension")
    server = film.Server(folder)
    runs: list[Run] = []
    try:
        for number in range(repeats):
            for name in KINDS:
                home = folder / f"{name}{number}"
                url = f"http://127.0.0.1:{server.port}/index.html"
                runs.append(run(name, home, extension, station.arguments, url, seconds))
                print(f"{name} {number + 1}/{repeats}: {runs[-1].total:.2%} of a core", file=sys.stderr)
    finally:
        server.stop()
    return runs


def report(runs: list[Run]) -> bool:
    """Prints; true where all is within its limits."""
    of = {name: [one for one in runs if one.kind == name] for name in KINDS}

    def mean(name: str, value: Callable[[Run], float]) -> float:
        return statistics.mean(map(value, of[name]))

    print("CPU, shares of a core            " + "".join(f"{name:>10}" for name in KINDS))
    for key in sorted({key for one in runs for key in one.cpu}):
        print(f"  {key:31}" + "".join(f"{mean(n, lambda r, k=key: r.cpu.get(k, 0.0)):10.2%}" for n in KINDS))
    print(f"  {'whole browser':31}" + "".join(f"{mean(name, lambda r: r.total):10.2%}" for name in KINDS))
    spread = {name: statistics.pstdev([one.total for one in of[name]]) for name in KINDS}
    print(f"  {'its spread over runs':31}" + "".join(f"{spread[name]:10.2%}" for name in KINDS))
    content, worker = mean("ours", lambda r: r.content), mean("ours", lambda r: r.worker)
    process = mean("ours", lambda r: r.cpu.get("extension", 0.0))
    print(f"content script (profile) {content:.3%}; worker (profile) {worker:.3%}, its process {process:.2%}")
    heap = mean("ours", lambda r: r.worker_heap)
    grown = mean("ours", lambda r: r.page_heap) - mean("none", lambda r: r.page_heap)
    print(f"heap: worker {heap:.2f} MB, and {grown:+.2f} MB in the page (that of a page without: "
          f"{mean('none', lambda r: r.page_heap):.2f} MB)")  # fmt: skip
    for name in ("empty", "ours"):
        sizes = {key: mean(name, lambda r, k=key: r.extension.get(k, 0.0)) for key in ("rss", "pss", "own")}
        print(f"process of the {name} extension: " + ", ".join(f"{k} {v:.1f} MB" for k, v in sizes.items()))
    host = {key: max(one.host.get(key, 0.0) for one in of["ours"]) for key in ("rss", "pss", "own")}
    print("host: " + ", ".join(f"{key} {value:.1f} MB" for key, value in host.items())
          + f", CPU {mean('ours', lambda r: r.cpu.get('host', 0.0)):.2%}")  # fmt: skip
    own = content + process
    limits = [
        (f"own CPU (content script and worker's process) {own:.2%} < {MOST_CPU:.0%}", own < MOST_CPU),
        (f"own heap {heap + max(0.0, grown):.1f} MB < {MOST_MB:.0f} MB", heap + max(0.0, grown) < MOST_MB),
        (f"host resident {host['rss']:.1f} MB < {MOST_MB:.0f} MB", 0 < host["rss"] < MOST_MB),
    ]
    for text, good in limits:
        print(("good: " if good else "NOT REACHED: ") + text)
    return all(good for _, good in limits)


async def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.extension.cost", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60, help="of each measurement, 5 to 600 (default 60)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="of the three, 1 to 50 (default 3)")
    options = parser.parse_args()
    if not (5 <= options.seconds <= 600 and 1 <= options.repeats <= 50):
        parser.error("allowed are 5 to 600 --seconds and 1 to 50 --repeats")
    with tempfile.TemporaryDirectory() as folder:
        station = Station(Path(folder))
        await station.start()
        try:
            runs = await asyncio.to_thread(measure, Path(folder), station, options.seconds, options.repeats)
        finally:
            await station.die()
    return 0 if report(runs) else 1


sys.exit(asyncio.run(main()))
