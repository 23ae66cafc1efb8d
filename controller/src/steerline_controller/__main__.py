"""The command `steerline-controller`: wires the parts together."""

from __future__ import annotations

import logging
import sys

import structlog

from steerline_controller.shell import cli, client
from steerline_controller.shell.settings import Settings, load
from steerline_controller.shell.settings_errors import SettingsError


def _log(form: str) -> None:
    """Log lines go to stderr, os-ken's own warnings among them."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    # Where a switch is turned away the adapter says so itself, in better words.
    logging.getLogger("ofp_event").setLevel(logging.CRITICAL)
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _summary(settings: Settings) -> str:
    sites = "; ".join(
        f"{site.name}: {len(site.lines)} lines, {len(site.side_a.edge_ports)} + "
        f"{len(site.side_b.edge_ports)} edge ports"
        for site in settings.sites
    )
    return f"the settings are right: strategy {settings.strategy}, mode {settings.mode}; {sites}"


def main() -> None:
    """Runs the command line. Exit status: 0 done, 1 not possible, 2 wrong use or settings."""
    arguments = cli.parser().parse_args()
    try:
        if arguments.command not in ("run", "check"):
            print(client.execute(arguments))
            return
        settings = load(arguments.settings)
        if arguments.command == "check" or arguments.check:
            print(_summary(settings))
            return
    except SettingsError as error:
        sys.exit(_said(str(error), 2))
    except client.CommandError as error:
        sys.exit(_said(str(error), 1))
    _log(arguments.log)
    # Imported late: `check` and the operator's commands need no os-ken.
    from steerline_controller.shell import service

    try:
        service.run(settings, service.engine_of(settings))
    except service.CannotStartError as error:
        sys.exit(_said(str(error), 1))


def _said(text: str, status: int) -> int:
    print(f"steerline-controller: {text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
