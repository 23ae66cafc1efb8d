"""Counters of one switch: the answers to one question, put together into one event."""

from __future__ import annotations

from collections.abc import Mapping

from steerline_contract.flows import FiveTuple
from steerline_controller.core.events import CountersRead, Side
from steerline_controller.shell.openflow import parse, wire

_CACHE = 65536


class Collector:
    """Gathers flow counters, in parts, until the port counters come, which were asked for last."""

    def __init__(self, site: str, side: Side) -> None:
        self._site = site
        self._side: Side = side
        self._flows: dict[FiveTuple, int] = {}
        self._known: dict[bytes, FiveTuple | None] = {}
        self._ports: dict[int, tuple[int, int]] = {}

    def take(self, message: bytes, line_of_port: Mapping[int, str]) -> CountersRead | None:
        """Takes one MULTIPART_REPLY; the event once all of them are there."""
        kind, more = parse.multipart(message)
        if kind == wire.MULTIPART_FLOW:
            self._take_flows(message)
            return None
        if kind != wire.MULTIPART_PORT:
            return None
        self._ports |= parse.port_counters(message)
        if more:
            return None
        lines = {line_of_port[p]: both for p, both in self._ports.items() if p in line_of_port}
        event = CountersRead(self._site, self._side, self._flows, lines)
        self._flows, self._ports = {}, {}
        return event

    def _take_flows(self, message: bytes) -> None:
        known = self._known
        for entry in parse.flow_entries(message):
            # Reading a match costs ten times the look-up of its bytes; a rule's never change.
            match = entry.match
            try:
                flow = known[match]
            except KeyError:
                if len(known) >= _CACHE:
                    known.clear()
                flow = known[match] = parse.flow_of_match(match, self._side)
            if flow is not None:
                self._flows[flow] = entry.byte_count
