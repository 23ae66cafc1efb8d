"""The demo's command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from steerline_testbed.browser.programs import find_programs
from steerline_testbed.experiment import demo
from steerline_testbed.experiment.errors import ToolMissingError
from steerline_testbed.experiment.progress import showing
from steerline_testbed.experiment.settings import RunSettings

PLAYERS = ("chromium", "firefox", "headless")


def register(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("demo", help="a video starves, then is rescued: two runs and a report")
    add = parser.add_argument
    add("--out", type=Path, default=Path("results/demo"), help="folder of the results (default: %(default)s)")
    add("--player", default="", help=f"{', '.join(PLAYERS)} (default: chromium, or headless without one)")
    add("--show", action="store_true", help="the browser in a window, where there is a display")
    add("--duration", type=float, default=200.0, metavar="S", help="seconds of each run (default: 200)")
    add("--traffic-start", type=float, default=30.0, metavar="S", help="(default: 30)")
    add("--flows", type=int, default=20, help="downloads (default: 20)")
    add("--seed", type=int, default=1)
    add("--strategies", default=",".join(demo.STRATEGIES), help="in this order (default: %(default)s)")
    add("--nat", action="store_true", help="the viewer is behind a home router")
    add("--plain", action="store_true", help="plain lines instead of a live picture")
    parser.set_defaults(command=demo_command)


def demo_command(options: argparse.Namespace) -> int:
    """Runs the demo, prints its table. Exit status 0 when both runs count, else 3."""
    player = options.player or usual_player()
    base = RunSettings.parse(
        {
            "player": player,
            "show": options.show,
            "screenshot_at_s": () if player == "headless" else demo.picture_times(options.duration),
            "duration_s": options.duration,
            "traffic_start_s": options.traffic_start,
            "flows": options.flows,
            "seed": options.seed,
            "nat": options.nat,
        }
    )
    strategies = [
        RunSettings.parse({"strategy": name.strip()}).strategy for name in options.strategies.split(",")
    ]
    again = f"steerline-testbed demo --player {player} --out {options.out} --flows {options.flows}"
    again += f" --duration {options.duration:g} --traffic-start {options.traffic_start:g}"
    again += f" --seed {options.seed}" + " --nat" * options.nat
    with showing(Console(stderr=True), options.plain) as progress:
        results = demo.run_demo(base, strategies, options.out, again, progress)
    print(demo.table_text(results))
    print(f"\nThe report: {options.out / 'report.html'}")
    return 0 if all(one.summary["valid"] for one in results) else 3


def usual_player() -> str:
    """Chromium where it is installed; else the headless player, and why."""
    try:
        find_programs("chromium")
    except ToolMissingError as error:
        print(f"No real browser watches, the headless player does: {error}", file=sys.stderr)
        return "headless"
    return "chromium"
