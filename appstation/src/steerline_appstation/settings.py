"""The station's settings: one TOML file, read once, wrong values refused with their allowed range."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from steerline_appstation.core.policy import IPNetwork, Policy
from steerline_appstation.errors import StartError
from steerline_appstation.settings_errors import explain


def split_endpoint(text: str) -> tuple[str, int]:
    """(host, port) of "127.0.0.1:8080" or "[::1]:8080". Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("write an IPv6 address in brackets: [::1]:8080")
    if not colon or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError("address:port, port 0 to 65535 (0: any free one)")
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise ValueError("address:port, with an IPv4 or [IPv6] address, or localhost") from None
    return host, int(port)


def is_loopback(endpoint: str) -> bool:
    """Whether only this machine reaches an endpoint that was checked."""
    host, _ = split_endpoint(endpoint)
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


def _endpoint(text: str) -> str:
    split_endpoint(text)
    return text


def _endpoint_or_none(text: str) -> str:
    return _endpoint(text) if text else text


def _redis_url(text: str) -> str:
    if text and not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("redis://..., rediss://..., unix://..., or empty for a private server")
    return text


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ValueError("a network such as 198.18.0.0/16 or fd5e:1::/64, no host bits set") from None
    return text


Endpoint = Annotated[str, AfterValidator(_endpoint)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Listen(_Table):
    """Where the station listens. Addresses other than loopback need [tls]."""

    reports: Endpoint = Field("127.0.0.1:50051", description="gRPC, for agents.")
    rest: Endpoint = Field("127.0.0.1:8080", description="HTTP, for operators. TLS only off loopback.")
    web: Annotated[str, AfterValidator(_endpoint_or_none)] = Field(
        "", description="HTTP, for browser extensions without a native host. Empty: none."
    )


class Tls(_Table):
    """The certificate that agents see. Paths are relative to the settings file."""

    certificate: str = Field(min_length=1, description="PEM file, chain included.")
    key: str = Field(min_length=1, description="PEM file.")


class RedisTable(_Table):
    """Where history is kept."""

    url: Annotated[str, AfterValidator(_redis_url)] = Field(
        "", description="A server that runs: redis://, rediss:// or unix://. Empty: a private child."
    )
    directory: str = Field("redis", min_length=1, description="The private child's files and socket.")
    max_memory_mb: int = Field(256, ge=16, le=65_536, description="The private child's bound, MiB.")


class Settings(_Table):
    """Settings of `steerline-appstation`."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="steerline-appstation settings")

    steering: Endpoint = Field("127.0.0.1:50052", description="The controller's steering service.")
    steering_ca: str = Field(
        "", description="PEM file of the authority of the controller's certificate; needed off loopback."
    )
    low_s: float = Field(20.0, ge=0.5, le=600, description="Below this much buffer a session is critical, s.")
    high_s: float = Field(35.0, ge=1, le=1200, description="From this much on it is no longer, s.")
    refill_s: float = Field(20.0, ge=1, le=600, description="In this time the buffer shall reach high_s, s.")
    report_timeout_s: float = Field(
        5.0, ge=1, le=60, description="Silence that ends a session; time to live of its protection, s."
    )
    customer_networks: list[Annotated[str, AfterValidator(_network)]] = Field(
        default_factory=list[str],
        description="Customers' addresses. A flow that names another customer is refused; "
        "a private address outside of all is taken for a household's own.",
    )
    max_sessions_per_address: int = Field(256, ge=1, le=100_000, description="At once.")
    max_sessions: int = Field(20_000, ge=1, le=1_000_000, description="At once, all addresses together.")
    max_reports_per_s_per_address: int = Field(
        1000, ge=1, le=100_000, description="A burst may be as many as two seconds' worth."
    )
    retention_s: float = Field(86_400, ge=60, le=31_536_000, description="History is kept this long, s.")
    record: str = Field("", description="Also append every record to this file, as JSON lines.")
    log_format: Literal["console", "json"] = Field("json", description="Of the log on stderr.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    listen: Listen = Field(default_factory=lambda: Listen.model_validate({}))
    tls: Tls | None = None
    redis: RedisTable = Field(default_factory=lambda: RedisTable.model_validate({}))

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        if self.high_s <= self.low_s:
            raise ValueError(f"high_s is {self.high_s:g}; allowed: more than low_s ({self.low_s:g})")
        for name in ("reports", "rest", "web"):
            endpoint = cast(str, getattr(self.listen, name))
            if endpoint and self.tls is None and not is_loopback(endpoint):
                raise ValueError(
                    f"listen.{name} is {endpoint}, not loopback, and there is no [tls]; "
                    "allowed: 127.0.0.1, [::1], or a [tls] table with certificate and key"
                )
        if not self.steering_ca and not is_loopback(self.steering):
            raise ValueError(f"steering is {self.steering}, not loopback; allowed: that with steering_ca")
        return self

    def policy(self) -> Policy:
        """What the core decides by."""
        networks: Iterable[IPNetwork] = (ipaddress.ip_network(n) for n in self.customer_networks)
        return Policy(
            low_s=self.low_s,
            high_s=self.high_s,
            refill_s=self.refill_s,
            report_timeout_s=self.report_timeout_s,
            customer_networks=tuple(networks),
            max_sessions_per_address=self.max_sessions_per_address,
            max_sessions=self.max_sessions,
            max_reports_per_s_per_address=self.max_reports_per_s_per_address,
        )


def load(path: Path) -> Settings:
    """Reads a settings file; relative paths in it become relative to its folder. Raises StartError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{path}: not TOML: {error}") from error
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        raise StartError("\n".join(f"{path}: {line}" for line in explain(error, Settings))) from None
    return _resolved(settings, path.parent)


def _resolved(settings: Settings, folder: Path) -> Settings:
    def beside(text: str) -> str:
        return str((folder / text).absolute()) if text else ""

    changes: dict[str, Any] = {
        "steering_ca": beside(settings.steering_ca),
        "record": beside(settings.record),
        "redis": settings.redis.model_copy(update={"directory": beside(settings.redis.directory)}),
    }
    if settings.tls is not None:
        tls = settings.tls
        changes["tls"] = Tls(certificate=beside(tls.certificate), key=beside(tls.key))
    return settings.model_copy(update=changes)
