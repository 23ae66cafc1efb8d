"""`steerline-testbed measure`: figures about the controller, on the real network."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steerline_testbed.measure import crossings, faults, moves, shares, tuples


def register(subparsers: Any) -> None:
    """Adds `measure` with its kinds."""
    parser = subparsers.add_parser(
        "measure",
        help="how fast, how lossless, how robust: crossings, moves, cuts, restarts, shares, tuples",
        description="Measures the controller on a network that has asserted itself. Prints JSON.",
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    _kind(
        kinds,
        "crossings",
        "from the report that crosses the threshold to the barrier reply and to the first packet",
        lambda o: crossings.measure(o.count, o.flows, o.seed, o.gap, _say),
        count=1000,
        flows=50,
        gap=0.15,
    )
    _kind(
        kinds,
        "moves",
        "what a flow loses when it is moved",
        lambda o: moves.measure(o.count, o.flows, o.seed, o.gap, _say),
        count=1000,
        flows=0,
        gap=0.1,
    )
    cut = _kind(
        kinds,
        "cuts",
        "how long flows are without a packet when their line dies",
        lambda o: faults.cuts(o.how, o.count, o.flows, o.seed, _say),
        count=10,
        flows=20,
        gap=0.0,
    )
    cut.add_argument("--how", choices=("carrier", "silent"), default="carrier")
    restart = _kind(
        kinds,
        "restarts",
        "what flows in progress lose when the controller is killed, and when steering is back",
        lambda o: faults.restarts(o.count, o.flows, o.seed, o.away, o.mode, _say),
        count=5,
        flows=50,
        gap=0.0,
    )
    restart.add_argument("--away", type=float, default=3.0, metavar="S", help="seconds without controller")
    restart.add_argument("--mode", choices=("reactive", "reactive-with-fallback"), default="reactive")
    share = _kind(
        kinds,
        "shares",
        "what TCP gives a connection that fetches pieces, beside downloads on one line",
        lambda o: shares.measure(o.count, o.flows, o.lines, o.seed, o.pieces, o.servers, _say),
        count=5,
        flows=4,
        gap=0.0,
    )
    share.add_argument("--pieces", type=float, nargs="+", default=[0.0, 2.0, 10.0], metavar="S",
        help="sizes in seconds of the video; 0 is endless (default: 0 2 10)")  # fmt: skip
    share.add_argument("--lines", type=int, default=1, help="of 10 Mbit/s, in turn (default: 1)")
    share.add_argument("--servers", nargs="+", choices=sorted(shares.ADDRESSES), default=["download-server"],
        help="whose pieces they are (default: download-server)")  # fmt: skip
    _tuples(kinds)


def _tuples(kinds: Any) -> None:
    text = "whether the connections that a real browser reports are those that carry its film, by a capture"
    parser: argparse.ArgumentParser = kinds.add_parser("tuples", help=text, description=text)
    parser.add_argument("--player", choices=("chromium", "firefox"), default="chromium",
        help="(default: chromium)")  # fmt: skip
    parser.add_argument("--http", choices=("1.1", "2", "3"), default="1.1", help="(default: 1.1)")
    parser.add_argument("--duration", type=float, default=60.0, metavar="S", help="(default: 60)")
    parser.add_argument("--change-every", type=float, default=10.0, metavar="S",
        help="servers end connections of that age; 0 is never (default: 10)")  # fmt: skip
    parser.add_argument("--window", type=float, default=2.0, metavar="S",
        help="a report is judged by what came in so many seconds before it (default: 2)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the capture and the host's record there"
    )

    def work(o: argparse.Namespace) -> dict[str, Any]:
        return tuples.measure(o.player, o.http, o.duration, o.change_every, o.window, o.seed, _say, o.keep)

    _prints(parser, "tuples", work)


def _kind(
    kinds: Any, name: str, text: str, work: Callable[[argparse.Namespace], dict[str, Any]], **defaults: float
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=text, description=text)
    parser.add_argument("--count", type=int, default=defaults["count"], help="(default: %(default)s)")
    parser.add_argument("--flows", type=int, default=defaults["flows"], help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    if defaults["gap"]:
        parser.add_argument(
            "--gap",
            type=float,
            default=defaults["gap"],
            metavar="S",
            help="(default: %(default)s)",
        )

    def counted(options: argparse.Namespace) -> dict[str, Any]:
        if options.count < 1 or options.flows < 0:
            parser.error("--count allows 1 or more, --flows 0 or more")
        return work(options)

    _prints(parser, name, counted)
    return parser


def _prints(
    parser: argparse.ArgumentParser, name: str, work: Callable[[argparse.Namespace], dict[str, Any]]
) -> None:
    parser.add_argument("--out", type=Path, help="also write the JSON there")

    def command(options: argparse.Namespace) -> int:
        result = {"measurement": name, **work(options)}
        text = json.dumps(result, indent=2)
        print(text)
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(text + "\n")
        return 0

    parser.set_defaults(command=command)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
