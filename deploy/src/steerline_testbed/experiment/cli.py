"""The experiments' commands: media, run, demo, campaign."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from steerline_testbed.experiment import campaign, demo_command, media
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.media_recipe import Recipe
from steerline_testbed.experiment.options import add_run_options, settings_of
from steerline_testbed.experiment.progress import showing
from steerline_testbed.experiment.results import finished
from steerline_testbed.experiment.run import Order, execute
from steerline_testbed.experiment.words import mbps, percent, ratio, seconds

Command = Callable[[argparse.Namespace], int]


def register(subparsers: Any) -> None:
    """Adds the commands. Each sets `command`, which takes the options and returns the exit status.

    A TestbedError that it raises is for the person at the terminal.
    """
    _register_media(subparsers)
    _register_run(subparsers)
    demo_command.register(subparsers)
    _register_campaign(subparsers)


def _register_media(subparsers: Any) -> None:
    parser = subparsers.add_parser("media", help="make the experiments' video (once; later runs find it)")
    parser.set_defaults(command=media_command)


def media_command(options: argparse.Namespace) -> int:
    """Makes the video and says where it is and what was measured of it."""
    del options
    console = Console(stderr=True)
    with showing(console) as progress:
        folder = media.ensure(Recipe(), progress=lambda what, done: progress.phase(f"{what}: {done:4.0%}"))
    print(folder)
    streams: Any = media.describe(folder)["streams"]
    for stream in streams:
        name = f"{stream['height']}p" if stream["kind"] == "video" else "audio"
        mean, deviation = stream["mean_bps"] / 1e6, stream["deviation_bps"] / 1e3
        print(f"{name}: {mean:.3f} Mbps, standard deviation {deviation:.0f} kbps")
    return 0


def _register_run(subparsers: Any) -> None:
    parser = subparsers.add_parser("run", help="one experiment: build, measure, write, remove")
    add_run_options(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument(
        "--settings", type=Path, help="settings from a file (or a summary.json), not from options"
    )
    parser.add_argument("--force", action="store_true", help="replace a complete run in --out")
    parser.add_argument("--resume", action="store_true", help="keep a complete run in --out and end at once")
    parser.add_argument("--run-id", default="", help="names the namespaces (default: drawn)")
    parser.add_argument("--plain", action="store_true", help="plain lines instead of a live picture")
    parser.set_defaults(command=run_command)


def run_command(options: argparse.Namespace) -> int:
    """One run. Exit status 0 when it counts, 3 when it was measured but does not count."""
    settings = settings_of(options) if options.settings is None else campaign.read_settings(options.settings)
    if options.resume and finished(options.out) is not None:
        print(f"{options.out}: a complete run is there, kept")
        return 0
    with showing(Console(stderr=True), options.plain) as progress:
        summary = execute(
            Order(settings, options.out, options.force or options.resume, options.run_id), progress
        )
    print(short_text(summary))
    print(options.out / "summary.json")
    return 0 if summary["valid"] else 3


def _register_campaign(subparsers: Any) -> None:
    parser = subparsers.add_parser("campaign", help="many runs over seeds, and one table; resumable")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--runs", type=Path, help="TOML: [defaults] and [[run]] tables with name, settings, seeds"
    )
    what.add_argument("--preset", choices=sorted(campaign.PRESETS))
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the results; complete runs there are kept")
    add("--parallel", type=int, default=2, help="runs side by side, 1 to 3 (default: 2)")
    add("--seeds", default="", help="instead of each run's own, as in 1,2,3")
    add("--only", default="", help="only the runs of these names, as in single-20,round-robin-20")
    add("--table", action="store_true", help="run nothing, only make the table of what is complete")
    parser.set_defaults(command=campaign_command)


def campaign_command(options: argparse.Namespace) -> int:
    """Runs a campaign and prints its table. Exit status 0 when every run is complete and counts, else 3."""
    if not 1 <= options.parallel <= campaign.MOST_SIDE_BY_SIDE:
        raise ExperimentError(f"--parallel is {options.parallel}; allowed: 1 to {campaign.MOST_SIDE_BY_SIDE}")
    runs = campaign.PRESETS[options.preset] if options.preset else campaign.load_runs(options.runs)
    if options.only:
        names = options.only.split(",")
        runs = [run for run in runs if run.get("name") in names]
    try:
        seeds = [int(part) for part in options.seeds.split(",")] if options.seeds else None
    except ValueError:
        raise ExperimentError(f"--seeds is {options.seeds!r}; allowed: whole numbers, as in 1,2,3") from None
    jobs = campaign.plan(runs, options.out, seeds)
    if not jobs:
        raise ExperimentError("nothing to run; --only names no run of the campaign")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if options.table:
        kinds = campaign.write_table(jobs, options.out)
    else:
        # Without it a campaign that is told to end would leave its runs behind.
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        kinds = campaign.run_campaign(jobs, options.parallel, options.out, say)
    print((options.out / "campaign.md").read_text())
    wanted = {name: sum(1 for job in jobs if job.name == name) for name in {job.name for job in jobs}}
    return 0 if all(kind.valid == wanted[kind.name] for kind in kinds) else 3


def short_text(summary: Any) -> str:
    """The figures that matter most, for the terminal."""
    lines: list[str] = []
    for video in summary["videos"]:
        play, buffer = video["play"], video["buffer"]
        lines.append(
            f"video {video['video']}: {play['stall_count']} stalls, {play['stall_s']:.1f} s; "
            f"at 480p {percent(play['share_at_480p_of_wall'])} of the time; buffer from 50 s on: "
            f"mean {seconds(buffer['mean_s'])}, least {seconds(buffer['minimum_s'])}; "
            f"below 20 s {percent(buffer['share_below_20_s'])}, at least 50 s "
            f"{percent(buffer['share_at_least_50_s'])} of the time"
        )
    lane, downloads = summary["lines"], summary["downloads"]
    running = ratio(lane["rho_all_downloads_running"])
    lines.append(
        f"rho {ratio(lane['rho'])}, all downloads running {running}, goodput {ratio(lane['rho_goodput'])}"
    )
    if downloads["count"]:
        lines.append(
            f"{downloads['count']} downloads: mean {mbps(downloads['mean_bps'])}, median "
            f"{mbps(downloads['median_bps'])}, slowest {mbps(downloads['slowest_bps'])}"
        )
    if not summary["valid"]:
        lines.append("THIS RUN DOES NOT COUNT: " + "; ".join(summary["invalid_because"]))
    return "\n".join(lines)


def main() -> None:
    """The experiments' commands alone, for development."""
    from steerline_testbed.network.errors import TestbedError

    parser = argparse.ArgumentParser(prog="steerline-testbed")
    register(parser.add_subparsers(required=True))
    options = parser.parse_args()
    try:
        raise SystemExit(options.command(options))
    except TestbedError as error:
        print(f"steerline-testbed: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
