"""Command line: reads what is asked for and turns errors into exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from steerline_appstation import settings
from steerline_appstation.errors import StartError
from steerline_appstation.shell.tls import check_certificate

_EPILOG = """\
A settings file with everything at its default, on this machine alone, is an empty file. A real one:

  steering = "127.0.0.1:50052"             # the controller
  low_s = 20.0                             # below: critical
  high_s = 35.0                            # from here on: no longer
  refill_s = 20.0
  report_timeout_s = 5.0
  customer_networks = ["198.18.0.0/16"]
  [listen]
  reports = "198.18.3.1:50051"             # gRPC, agents; TLS is compulsory off loopback
  rest = "127.0.0.1:8080"                  # HTTP, operators; see /docs there
  web = "198.18.3.1:8443"                  # HTTP, extensions without a native host; off by default
  [tls]
  certificate = "cert.pem"
  key = "key.pem"
  [redis]
  directory = "/run/steerline/x/redis"     # a private redis-server; or: url = "redis://..."

Relative paths are relative to the settings file. All settings: steerline-appstation schema.
Exit codes: 0 stopped by SIGTERM or SIGINT, 1 something nobody expected (with its trace), 2 wrong use.
"""


def main() -> None:
    """Entry point of `steerline-appstation`."""
    arguments = _parser().parse_args()
    try:
        code = _COMMANDS[arguments.command](arguments)
    except StartError as error:
        print(f"steerline-appstation: {error}", file=sys.stderr)
        code = 2
    raise SystemExit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="steerline-appstation",
        description="The application station: players' agents report here how many seconds they have left; "
        "it assesses each session and tells the controller.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a station until SIGTERM",
        description="Runs a station. Prints one line 'event=ready reports=... rest=... web=...' to stdout "
        "when it listens; logs to stderr.",
    )
    run.add_argument("--settings", type=Path, required=True, metavar="FILE", help="settings, TOML")
    run.add_argument("--check", action="store_true", help="only check the settings, as `check` does")
    check = commands.add_parser(
        "check",
        help="check a settings file and its certificate; start nothing",
        description="Exits 0 where `run` would accept the file, else 2 with key, value and allowed range.",
    )
    check.add_argument("--settings", type=Path, required=True, metavar="FILE", help="settings, TOML")
    commands.add_parser("schema", help="print the JSON Schema of the settings")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    if arguments.check:
        return _check(arguments)
    loaded = settings.load(arguments.settings)
    # gRPC writes lines of its own to stderr, where a reader expects ours.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    # Only here: who checks settings need not wait for a web server to be imported.
    from steerline_appstation.process import run

    run(loaded)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    loaded = settings.load(arguments.settings)
    if loaded.tls is not None:
        check_certificate(loaded.tls)
    print(f"{arguments.settings}: good")
    return 0


def _schema(_: argparse.Namespace) -> int:
    print(json.dumps(settings.Settings.model_json_schema(), indent=2))
    return 0


_COMMANDS = {"run": _run, "check": _check, "schema": _schema}


if __name__ == "__main__":
    main()
