"""Settings of the controller and of the application station for a run, and how they are started in it."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
import trustme

from steerline_testbed.network.errors import MissingRequirementError, ServiceError
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import Plan
from steerline_testbed.network.process import Process
from steerline_testbed.network.switches import DATAPATH_IDS, OPENFLOW_ADDRESS

STEERING_ADDRESS = "127.0.0.1:50052"
REST_ADDRESS = "127.0.0.1:8080"
REPORTS_PORT = 50051
WEB_PORT = 8443
SITE = "home"


class Certificates:
    """The run's own authority and the certificates it gives, as PEM files of the run's directory."""

    def __init__(self, directory: Path, addresses: tuple[str, ...]) -> None:
        self._directory = directory
        self._authority = trustme.CA(organization_name="Steerline testbed")
        self.ca = directory / "ca.pem"
        directory.mkdir(exist_ok=True)
        self._authority.cert_pem.write_to_path(str(self.ca))
        self.certificate, self.key = self.issue("station", *addresses, "127.0.0.1", "localhost")

    def issue(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """A certificate for these addresses, and its key, as the files `name`.pem and `name`.key."""
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        made = self._authority.issue_cert(*addresses)
        certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        key.touch(mode=0o600)
        key.write_bytes(made.private_key_pem.bytes())
        return certificate, key


def controller_settings(plan: Plan, directory: Path, hosts: bool = True) -> dict[str, Any]:
    """The controller's settings file as a dict. `hosts` tells it where each address is,
    else it learns them.
    """
    site: dict[str, Any] = {
        "name": SITE,
        # Open vSwitch waits up to 8 s between attempts of its own: the controller calls it instead.
        **{
            side: {
                "datapath_id": DATAPATH_IDS[side],
                "edge_ports": plan.edge_ports(side),
                "connect": f"unix:{directory}/ovs/{side}.mgmt",
            }
            for side in ("A", "B")
        },
        "line": [
            {
                "name": line.name,
                "port_A": line.port_a,
                "port_B": line.port_b,
                "capacity_bps": line.spec.capacity_bps,
            }
            for line in plan.lines
        ],
    }
    if hosts:
        site["host"] = [
            {"address": address, "side": node.side, "port": node.port}
            for node in plan.edge
            for address in node.addresses
        ]
    return {
        "strategy": "buffer-threshold",
        "mode": "reactive",
        "record": str(directory / "events.jsonl"),
        "listen": {"openflow": OPENFLOW_ADDRESS, "steering": STEERING_ADDRESS},
        "site": [site],
    }


def station_settings(plan: Plan, directory: Path, certificates: Certificates) -> dict[str, Any]:
    """The application station's settings file as a dict."""
    redis = directory / "redis"
    redis.mkdir(exist_ok=True)
    return {
        "steering": STEERING_ADDRESS,
        "customer_networks": ["198.18.0.0/16"] + (["fd5e:1::/64"] if plan.topology.ipv6 else []),
        "listen": {
            "reports": f"{plan.core.ipv4}:{REPORTS_PORT}",
            "rest": REST_ADDRESS,
            "web": f"{plan.core.ipv4}:{WEB_PORT}",
        },
        "tls": {"certificate": str(certificates.certificate), "key": str(certificates.key)},
        "redis": {"url": "", "directory": str(redis)},
    }


def write_settings(path: Path, settings: Mapping[str, Any]) -> Path:
    """Settings as TOML."""
    path.write_text(tomli_w.dumps(dict(settings)), encoding="utf-8")
    return path


def executable(name: str) -> str:
    """A command of Steerline beside this Python; MissingRequirementError when it is not installed there."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise MissingRequirementError(f"missing: {name}, expected at {path}; bring it with: make setup")
    return str(path)


def wait_listening(process: Process, namespace: str, address: str, what: str, timeout_s: float = 20) -> None:
    """Return once `address` (host:port) takes connections; ServiceError when the process ends or takes too
    long.
    """
    host, _, port = address.rpartition(":")
    deadline_s = time.monotonic() + timeout_s

    def connects() -> bool:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    while not inside(namespace, connects):
        process.require_running()
        if time.monotonic() > deadline_s:
            raise ServiceError(
                f"{what} does not listen on {address} after {timeout_s:g} s; its log {process.log} ends:\n"
                f"{process.tail()}"
            )
        time.sleep(0.05)
