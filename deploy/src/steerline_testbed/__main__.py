"""Command line: an access network on one machine, and a measuring instrument."""

from __future__ import annotations

import argparse
import os
import sys

from steerline_testbed.network import cli as network_cli
from steerline_testbed.network.errors import TestbedError

_EXAMPLES = """
examples (as root: the testbed makes network namespaces)
  steerline-testbed assert                          is a network right on this machine? 4 seconds
  steerline-testbed up lab --strategy round-robin   build one and look around in it
  steerline-testbed up lab --detach; steerline-testbed down lab
  steerline-testbed run --strategy buffer-threshold --flows 20 --duration 420 --out results/one

A network is two OpenFlow switches (A for the customers, B for the servers) joined by leased lines, each host
and each line in a network namespace that carries the run's id. Leaving a run removes exactly what it made;
what a killed run left is removed by the next start. Settings, logs and sockets of a live run are in
/run/steerline/RUN.
"""


def main() -> None:
    """Run one command; errors that are for the user go to standard error without a trace, exit status 1."""
    parser = argparse.ArgumentParser(
        prog="steerline-testbed",
        description="The emulated access network and the experiments on it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    network_cli.register(subparsers)
    if sys.argv[1:2] not in [[name] for name in network_cli.COMMANDS]:
        # plots and tables take a second to load: the network's commands do without
        from steerline_testbed.experiment import cli as experiment_cli
        from steerline_testbed.measure import cli as measure_cli

        experiment_cli.register(subparsers)
        measure_cli.register(subparsers)
    options = parser.parse_args()
    try:
        status = options.command(options)
        sys.stdout.flush()
    except TestbedError as error:
        print(f"steerline-testbed: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        print("steerline-testbed: interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    raise SystemExit(status)


if __name__ == "__main__":
    main()
