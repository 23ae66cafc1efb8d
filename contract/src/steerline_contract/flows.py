"""Flows and lines, in OpenFlow's words."""

from __future__ import annotations

import enum
import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from steerline_contract.errors import InvalidValueError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

TCP = 6
UDP = 17


@lru_cache(maxsize=65536)
def parse_address(text: str, field: str = "address") -> IPAddress:
    """Reads a textual IPv4 or IPv6 address. Raises InvalidValueError."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InvalidValueError(field, text, "an IPv4 or IPv6 address") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise InvalidValueError(field, text, "an address without a zone")
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
    return address


@dataclass(frozen=True, slots=True)
class FiveTuple:
    """A flow seen from the customer: client is the customer's end, server the end beyond the lines.

    Both directions are one flow. Where the protocol has no ports (anything but TCP and UDP, and
    fragments) both ports are 0 and the flow is all such packets between the two addresses.
    """

    protocol: int
    client: IPAddress
    client_port: int
    server: IPAddress
    server_port: int

    def __post_init__(self) -> None:
        if not 0 <= self.protocol <= 255:
            raise InvalidValueError("protocol", self.protocol, "0 to 255")
        if self.client.version != self.server.version:
            raise InvalidValueError("server", str(self.server), f"an IPv{self.client.version} address")
        for field in ("client_port", "server_port"):
            port = getattr(self, field)
            if not 0 <= port <= 65535:
                raise InvalidValueError(field, port, "0 to 65535")

    @property
    def has_ports(self) -> bool:
        """Whether the flow is told from others by its ports."""
        return self.client_port != 0 or self.server_port != 0

    def __str__(self) -> str:
        name = {TCP: "tcp", UDP: "udp"}.get(self.protocol, str(self.protocol))
        return f"{name} {_end(self.client, self.client_port)} - {_end(self.server, self.server_port)}"


def _end(address: IPAddress, port: int) -> str:
    if not port:
        return str(address)
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


class LineStatus(enum.Enum):
    """What the controller knows of a leased line."""

    UP = 1
    NO_CARRIER = 2
    SILENT = 3
    DRAINING = 4


@dataclass(frozen=True, slots=True)
class Link:
    """A leased line of a site."""

    name: str
    capacity_bps: int

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 32:
            raise InvalidValueError("line name", self.name, "1 to 32 characters")
        if not 1_000 <= self.capacity_bps <= 400_000_000_000:
            raise InvalidValueError(
                f"capacity_bps of line {self.name}", self.capacity_bps, "1e3 to 4e11 bit/s"
            )


@dataclass(frozen=True, slots=True)
class LineState:
    """One line as it was in the last second. Rates are of layer 2."""

    site: str
    line: str
    capacity_bps: int
    status: LineStatus
    down_bps: int
    up_bps: int
    flow_count: int
    protected_session_ids: tuple[str, ...] = ()
