"""Puts the parts together, runs them, and takes them apart on SIGTERM."""

from __future__ import annotations

import gc
import signal
import sys

import structlog

from steerline_contract.flows import Link
from steerline_controller.core.config import SiteConfig, StrategySettings
from steerline_controller.core.engine import Engine
from steerline_controller.core.events import Side
from steerline_controller.shell.clock import Clock
from steerline_controller.shell.grpc_server import SteeringServer, SteeringService
from steerline_controller.shell.inputs import Inbox, Stop
from steerline_controller.shell.openflow.adapter import OpenFlowServer
from steerline_controller.shell.publish import Publisher
from steerline_controller.shell.record import Record
from steerline_controller.shell.runner import EngineLike, Runner, Timing
from steerline_controller.shell.settings import Settings, SiteSettings, split_listen
from steerline_controller.shell.switch import SwitchPlan

LOG = structlog.get_logger()


class CannotStartError(RuntimeError):
    """Something outside stands in the way; the text says what."""


def engine_of(settings: Settings) -> EngineLike:
    """The engine that the settings describe."""
    sites = [
        SiteConfig(site.name, tuple(Link(line.name, line.capacity_bps) for line in site.lines))
        for site in settings.sites
    ]
    return Engine(
        sites,
        settings.strategy,
        StrategySettings(damping_s=settings.damping_s, best_effort=settings.best_effort, seed=settings.seed),
    )


def _plan(site: SiteSettings, side: Side) -> SwitchPlan:
    return SwitchPlan(
        site=site.name,
        side=side,
        datapath_id=site.side(side).number,
        lines=tuple((line.name, line.port(side)) for line in site.lines),
        edges=site.side(side).edge_ports,
        hosts=tuple((host.ip, host.port) for host in site.hosts if host.side == side),
    )


def plans_of(settings: Settings) -> list[SwitchPlan]:
    """One plan for each switch."""
    return [_plan(site, side) for site, side, _ in settings.switches()]


def run(settings: Settings, engine: EngineLike) -> None:
    """Runs until SIGTERM or SIGINT; rules stay on the switches. Raises CannotStartError."""
    # A thread that computes gives way after this long: decisions wait for no parser.
    sys.setswitchinterval(0.0005)
    inbox: Inbox = Inbox()
    clock, publisher = Clock(), Publisher()
    try:
        record = Record(settings.record) if settings.record else None
    except OSError as error:
        raise CannotStartError(f"record {settings.record}: {error.strerror}") from error
    runner = Runner(
        engine,
        plans_of(settings),
        settings.mode,
        Timing(settings.idle_timeout_s, settings.statistics_interval_s),
        inbox,
        publisher,
        clock,
        record,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _frame: inbox.put(Stop(signal.Signals(n).name)))
    try:
        targets = tuple(side.target for _, _, side in settings.switches() if side.target is not None)
        switches = OpenFlowServer(split_listen(settings.listen.openflow), inbox, runner.allowed, targets)
    except OSError as error:
        raise CannotStartError(f"listen.openflow {settings.listen.openflow}: {error.strerror}") from error
    steering = SteeringServer(
        SteeringService(inbox, publisher, clock), settings.listen.steering, settings.tls
    )
    try:
        port = steering.start()
    except OSError as error:
        raise CannotStartError(f"listen.steering {settings.listen.steering}: {error}") from error
    switches.start()
    LOG.info(
        "ready",
        openflow=f"{switches.address[0]}:{switches.address[1]}",
        steering=f"{split_listen(settings.listen.steering)[0]}:{port}",
        strategy=settings.strategy,
        mode=settings.mode,
        sites=", ".join(site.name for site in settings.sites),
    )
    # What is there now stays: without it each full collection walks os-ken and gRPC, some 50 ms.
    gc.collect()
    gc.freeze()
    reason = runner.run()
    LOG.info("stopping; the switches keep their rules", why=reason)
    switches.close()
    steering.stop()
    if record is not None:
        record.close()
