"""The settings file: parsed once, unknown keys refused, each error with key, value and allowed range."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from steerline_contract.flows import IPAddress, parse_address
from steerline_controller.core.events import Side
from steerline_controller.shell.settings_errors import SettingsError, as_text


def _listen(text: str) -> str:
    split_listen(text)
    return text


def split_listen(text: str) -> tuple[str, int]:
    """'127.0.0.1:6653' or '[::1]:6653' as address and port. Raises ValueError."""
    host, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port)
    except ValueError:
        raise ValueError("allowed: address:port as in 127.0.0.1:6653 or [::1]:6653") from None
    if not 0 <= number <= 65535 or (address.version == 6) != host.startswith("["):
        raise ValueError("allowed: address:port as in 127.0.0.1:6653 or [::1]:6653, port 0 to 65535")
    return str(address), number


def _connect(text: str) -> str:
    if text.startswith("unix:/") and len(text) <= 107 + 5:
        return text
    try:
        if split_listen(text)[1] and is_loopback(text):
            return text
    except ValueError:
        pass
    raise ValueError("allowed: unix:/path of at most 107 characters, or a loopback address:port")


def is_loopback(text: str) -> bool:
    """Whether an address:port is reachable from this machine alone."""
    return ipaddress.ip_address(split_listen(text)[0]).is_loopback


def _host(text: str) -> str:
    address = parse_address(text)
    if address.is_multicast or address.is_unspecified:
        raise ValueError("allowed: the address of one host")
    return str(address)


ListenAddress = Annotated[str, AfterValidator(_listen)]
# Linux' and Open vSwitch's bound on an interface's name is 15 characters.
PortName = Annotated[str, Field(min_length=1, max_length=15, pattern=r"^[^\s/]+$")]
Name = Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9._-]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ListenSettings(_Strict):
    """Where the controller listens."""

    openflow: ListenAddress = Field("127.0.0.1:6653", description="switches connect here")
    steering: ListenAddress = Field("127.0.0.1:50052", description="station and operators connect here")


class TlsSettings(_Strict):
    """Compulsory where steering is not on loopback."""

    certificate: Path = Field(description="PEM file: the server's certificate chain")
    key: Path = Field(description="PEM file: its private key")
    client_ca: Path | None = Field(None, description="PEM file: clients must show a certificate of this CA")


class SideSettings(_Strict):
    """One switch of a site."""

    datapath_id: str = Field(pattern=r"^[0-9a-f]{16}$", description="16 hexadecimal digits, as OVS shows it")
    connect: Annotated[str, AfterValidator(_connect)] | None = Field(
        None,
        description="connect to the switch, which listens here, instead of waiting for it: unix:/path "
        "(Open vSwitch: RUNDIR/BRIDGE.mgmt) or a loopback address:port; it is back sooner after a restart",
    )
    edge_ports: tuple[PortName, ...] = Field((), max_length=4096, description="ports that are not lines")

    @property
    def target(self) -> tuple[str, str | int] | None:
        """Where the switch listens: ("unix", path) or (address, port)."""
        if self.connect is None:
            return None
        if self.connect.startswith("unix:"):
            return "unix", self.connect.removeprefix("unix:")
        return split_listen(self.connect)

    @property
    def number(self) -> int:
        """The datapath id as OpenFlow carries it."""
        return int(self.datapath_id, 16)


class LineSettings(_Strict):
    """A leased line: its port on either switch, and its rate."""

    name: Name
    port_a: PortName = Field(alias="port_A")
    port_b: PortName = Field(alias="port_B")
    capacity_bps: int = Field(ge=1_000, le=400_000_000_000, description="bit/s, of layer 2")

    def port(self, side: Side) -> str:
        """The line's port on one switch."""
        return self.port_a if side == "A" else self.port_b


class HostSettings(_Strict):
    """A destination whose port is configured rather than learnt."""

    address: Annotated[str, AfterValidator(_host)]
    side: Literal["A", "B"]
    port: PortName

    @property
    def ip(self) -> IPAddress:
        """The address."""
        return parse_address(self.address)


class SiteSettings(_Strict):
    """Access switch A, provider switch B, and the lines between them."""

    name: Name
    side_a: SideSettings = Field(alias="A")
    side_b: SideSettings = Field(alias="B")
    lines: tuple[LineSettings, ...] = Field(alias="line", min_length=1, max_length=1024)
    hosts: tuple[HostSettings, ...] = Field((), alias="host", max_length=65536)

    def side(self, side: Side) -> SideSettings:
        """One of the two switches."""
        return self.side_a if side == "A" else self.side_b

    @model_validator(mode="after")
    def _consistent(self) -> SiteSettings:
        _unique("line name", (line.name for line in self.lines))
        _unique("host address", (host.address for host in self.hosts))
        for side in ("A", "B"):
            ports = [*self.side(side).edge_ports, *(line.port(side) for line in self.lines)]
            _unique(f"port of switch {side}", ports)
        for host in self.hosts:
            edges = self.side(host.side).edge_ports
            if host.port not in edges:
                raise ValueError(
                    f"host {host.address}: port {host.port!r} is not an edge port of {host.side}; "
                    f"allowed: {', '.join(edges) or '(none)'}"
                )
        return self


def _unique(what: str, values: Iterable[object]) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} {value!r} stands twice; allowed: once")
        seen.add(value)


class Settings(_Strict):
    """Everything a controller must be told."""

    strategy: Literal["single", "random", "round-robin", "buffer-threshold"] = "buffer-threshold"
    mode: Literal["reactive", "reactive-with-fallback"] = "reactive"
    best_effort: Literal["round-robin", "single"] = "round-robin"
    damping_s: float = Field(10.0, ge=0, le=3600, description="a best-effort flow moves at most once in it")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="of strategy random")
    idle_timeout_s: int = Field(30, ge=1, le=65535, description="best-effort rules expire after it")
    statistics_interval_s: float = Field(1.0, ge=0.1, le=60)
    record: Path | None = Field(None, description="every decision as one JSON line")
    listen: ListenSettings = ListenSettings()  # pyright: ignore[reportCallIssue]
    tls: TlsSettings | None = None
    sites: tuple[SiteSettings, ...] = Field(alias="site", min_length=1, max_length=256)

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        _unique("site name", (site.name for site in self.sites))
        _unique("datapath_id", (site.side(s).datapath_id for site in self.sites for s in ("A", "B")))
        if self.tls is None and not is_loopback(self.listen.steering):
            raise ValueError(
                f"listen.steering is {self.listen.steering!r}, which others can reach; allowed: a loopback "
                "address (127.0.0.1, [::1]), or any with [tls] certificate and key"
            )
        if not is_loopback(self.listen.openflow):
            raise ValueError(
                f"listen.openflow is {self.listen.openflow!r}; allowed: a loopback address (127.0.0.1, "
                "[::1]): OpenFlow is not protected here; lead switches of other machines in by a tunnel"
            )
        return self

    def switches(self) -> Iterator[tuple[SiteSettings, Side, SideSettings]]:
        """Every switch that is configured."""
        for site in self.sites:
            yield site, "A", site.side_a
            yield site, "B", site.side_b


def load(path: Path) -> Settings:
    """Reads a settings file. Raises SettingsError with everything that is wrong in it.

    Relative paths in it are taken from the file's own directory.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is not TOML: {error}") from None
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(f"{path}: {line}" for line in as_text(error, Settings))) from None
    return _resolve(settings, path.parent)


def _resolve(settings: Settings, base: Path) -> Settings:
    changes: dict[str, object] = {}
    if settings.record is not None:
        changes["record"] = base / settings.record
    if settings.tls is not None:
        tls = settings.tls
        paths = {"certificate": base / tls.certificate, "key": base / tls.key}
        if tls.client_ca is not None:
            paths["client_ca"] = base / tls.client_ca
        for key, file in paths.items():
            try:
                file.read_bytes()
            except OSError as error:
                raise SettingsError(f"tls.{key} is {str(file)!r}: {error.strerror}") from None
        changes["tls"] = tls.model_copy(update=paths)
    return settings.model_copy(update=changes)
