"""The options of one run, as words of a command line."""

from __future__ import annotations

import argparse

from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.settings import STRATEGIES, RunSettings, parse_overrides


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """The options of one run; their defaults are RunSettings'."""
    known = ", ".join(STRATEGIES)
    default = RunSettings()
    add = parser.add_argument
    add("--strategy", default=default.strategy, help=f"{known} (default: %(default)s)")
    add("--player", default=default.player, help="headless (default), chromium or firefox")
    add("--page", default=default.page, help="a browser's: dashjs (default), hlsjs, shaka, mp4 or webm")
    add("--http", default=default.http, help="a browser's: 1.1 (default), 2 or 3")
    add("--tabs", action="store_true", help="a browser's: two tabs that play and a third that is paused")
    add("--show", action="store_true", help="the browser in a window, where there is a display")
    add("--screenshot-at", default="", metavar="S,S", help="a browser's pictures, into raw/")
    add("--videos", type=int, default=default.videos, help="players, each with its own viewer (default: 1)")
    add("--flows", type=int, default=default.flows, help="downloads (default: %(default)s)")
    add("--duration", type=float, default=default.duration_s, metavar="S", help="seconds (default: 420)")
    add("--seed", type=int, default=default.seed, help="of everything that is left to chance (default: 1)")
    add("--traffic-start", type=float, default=default.traffic_start_s, metavar="S", help="(default: 60)")
    add("--traffic-interval", type=float, default=default.traffic_interval_s, metavar="S",
        help="seconds between two downloads' starts (default: 1)")  # fmt: skip
    add("--browsers", type=int, default=default.browsers, help="customers who browse, 0 or 1 (default: 1)")
    add("--nat", action="store_true", help="the viewers are behind a home router")
    add("--best-effort", default=default.best_effort, help="round-robin (default) or single")
    add("--rule", default=default.rule, help="the player's rate rule: on (default), off, or a page's default")
    add("--congestion-control", default=default.congestion_control, help="cubic (default), bbr, ...")
    add("--lines", type=int, default=None, help="leased lines of one rate (default: 5)")
    add("--line-mbps", default="10", help="Mbps of each line; 20,10,10 for unequal ones (default: 10)")
    add("--mode", default=default.mode, help="reactive (default) or reactive-with-fallback")
    add("--station-side", default=default.station_side, help="A (default) or B")
    add("--set", action="append", default=[], metavar="PART.KEY=VALUE", dest="overrides",
        help="a setting of controller, station or agent, as in controller.damping_s=5")  # fmt: skip


def settings_of(options: argparse.Namespace) -> RunSettings:
    """The settings that the options ask for. Raises ExperimentError naming the wrong one."""
    return RunSettings.parse(
        {
            "strategy": options.strategy,
            "player": options.player,
            "page": options.page,
            "http": options.http,
            "tabs": options.tabs,
            "show": options.show,
            "screenshot_at_s": times_of(options.screenshot_at),
            "videos": options.videos,
            "flows": options.flows,
            "duration_s": options.duration,
            "seed": options.seed,
            "traffic_start_s": options.traffic_start,
            "traffic_interval_s": options.traffic_interval,
            "browsers": options.browsers,
            "nat": options.nat,
            "best_effort": options.best_effort,
            "rule": options.rule,
            "congestion_control": options.congestion_control,
            "line_mbps": lines_of(options.lines, options.line_mbps),
            "mode": options.mode,
            "station_side": options.station_side,
            "overrides": parse_overrides(options.overrides),
        }
    )


def times_of(text: str) -> tuple[float, ...]:
    """`10,100` as seconds. Raises ExperimentError."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise ExperimentError(f"--screenshot-at is {text!r}; allowed: seconds, as in 10,100") from None


def lines_of(count: int | None, text: str) -> tuple[float, ...]:
    """`5` lines of `10` Mbps, or `20,10,10`. Raises ExperimentError."""
    try:
        rates = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ExperimentError(
            f"--line-mbps is {text!r}; allowed: 10, or one rate per line as in 20,10,10"
        ) from None
    if len(rates) == 1:
        if count is not None and not 1 <= count <= 32:
            raise ExperimentError(f"--lines is {count}; allowed: 1 to 32")
        return rates * (5 if count is None else count)
    if count is not None and count != len(rates):
        raise ExperimentError(f"--lines is {count}, but --line-mbps names {len(rates)} lines")
    return rates
