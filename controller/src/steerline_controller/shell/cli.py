"""The command line: what can be said, and what is wrong with what was said."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
Steers flows over leased lines. Two OpenFlow 1.3 switches (A at the customers, B at the Internet)
connect to it; the application station tells it which player's buffer runs low; it moves that
player's flows to a better line, and everything else out of the way.

begin with:
  steerline-controller check --settings controller.toml    is the file right?
  steerline-controller run --settings controller.toml      run in the foreground
  steerline-controller state                               what does a running one see?
"""

_SETTINGS = """\
a settings file:
  strategy = "buffer-threshold"   # single | random | round-robin | buffer-threshold
  mode = "reactive"               # reactive | reactive-with-fallback: new flows live without us
  record = "events.jsonl"         # optional: every decision as one JSON line
  [listen]
  openflow = "127.0.0.1:6653"
  steering = "127.0.0.1:50052"
  [[site]]
  name = "home"
  [site.A]
  datapath_id = "00000000000000a1"   # ovs-vsctl get bridge BRIDGE datapath_id
  edge_ports = ["a-viewer1"]
  [site.B]
  datapath_id = "00000000000000b1"
  edge_ports = ["b-server"]
  [[site.line]]
  name = "line1"
  port_A = "a-line1"
  port_B = "b-line1"
  capacity_bps = 10_000_000
"""


def _number(text: str) -> float:
    value = float(text)
    if not 0 < value <= 600:
        raise argparse.ArgumentTypeError(f"{text}; allowed: more than 0, up to 600 s")
    return value


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        prog="steerline-controller", description=_DESCRIPTION, epilog=_SETTINGS, formatter_class=raw
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run",
        help="run the controller in the foreground",
        epilog=_SETTINGS,
        formatter_class=raw,
        description="Runs until SIGTERM or SIGINT; the switches keep their rules, so flows go on.",
    )
    run.add_argument("--settings", type=Path, required=True, metavar="FILE", help="TOML")
    run.add_argument("--check", action="store_true", help="read the settings, say what is wrong, and end")
    run.add_argument("--log", choices=("text", "json"), default="text", help="form of log lines on stderr")

    check = commands.add_parser(
        "check", help="is a settings file right?", epilog=_SETTINGS, formatter_class=raw
    )
    check.add_argument("--settings", type=Path, required=True, metavar="FILE", help="TOML")

    def client(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument(
            "--steering", default="127.0.0.1:50052", metavar="ADDRESS:PORT", help="of a running controller"
        )
        command.add_argument("--ca", type=Path, metavar="FILE", help="speak TLS; PEM of the CA to trust")
        command.add_argument("--timeout", type=_number, default=5.0, metavar="S", help="give up after (5)")
        return command

    for name, text in (
        ("steer", "move a session's flows to a line now; the strategy may move them again"),
        ("pin", "move a session's flows to a line and keep them there until released"),
    ):
        command = client(name, text)
        command.add_argument("session", help="session id, as `state` shows it")
        command.add_argument("line", help="name of a line, as `state` shows it")
    client("release", "end a session's protection and its pin").add_argument("session", help="session id")
    for name, text in (
        ("drain", "take a line out of use, flow by flow"),
        ("undrain", "take a line back into use"),
    ):
        command = client(name, text)
        command.add_argument("site", help="name of the site")
        command.add_argument("line", help="name of the line")
    client("state", "show lines, sessions and flows").add_argument(
        "--json", action="store_true", help="as JSON, for programs"
    )
    return top
