"""Probes: small frames that must come out at the other end of their line. What does not is silent."""

from __future__ import annotations

import os
from collections.abc import Sequence

import structlog

from steerline_controller.core.events import ProbeArrived
from steerline_controller.shell.openflow import packets
from steerline_controller.shell.switch import Switch

LOG = structlog.get_logger()

_FROM_CONTROLLER = 0xFFFFFFFD  # OFPP_CONTROLLER as in_port: the packet came from no port


class Prober:
    """Sends probes and knows its own again."""

    def __init__(self, sites: Sequence[str]) -> None:
        self._sites = sites
        self._token = os.urandom(packets.TOKEN_LENGTH)
        self._number = 0
        self._miswired: set[tuple[str, str, str]] = set()

    def next_round(self) -> None:
        """The probes that follow carry a new number."""
        self._number = (self._number + 1) & 0xFFFFFFFF

    def send(self, switch: Switch) -> None:
        """One probe onto each line of a switch."""
        site = self._sites.index(switch.plan.site)
        for line in switch.line_ports:
            probe = packets.Probe(site, line.index, switch.plan.side, self._number)
            switch.packet_out(_FROM_CONTROLLER, line.port, packets.probe_frame(probe, self._token))

    def arrived(self, switch: Switch, in_port: int, payload: bytes) -> ProbeArrived | None:
        """A frame of the probes' type came out of a port: the event, when it is ours and in its place."""
        probe = packets.read_probe(payload, self._token)
        line = switch.line_of_port.get(in_port)
        if probe is None or line is None:
            return None
        plan = switch.plan
        same_site = probe.site_index == self._sites.index(plan.site) and probe.line_index < len(plan.lines)
        sent_on = plan.lines[probe.line_index][0] if same_site else f"site {self._sites[probe.site_index]}"
        if sent_on == line and probe.side != plan.side:
            return ProbeArrived(plan.site, plan.side, line)
        key = (plan.title, line, f"{sent_on} of {probe.side}")
        if key not in self._miswired:
            self._miswired.add(key)
            LOG.error("cabling: a line's frames come out elsewhere", at=key[0], line=line, sent_on=key[2])
        return None
