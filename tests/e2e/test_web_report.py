"""A browser without the native host: its reports go over the web, with the video server's address alone."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.network import Network, Topology
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import STATION_IPV4
from steerline_testbed.network.services import WEB_PORT

pytestmark = pytest.mark.network

ENDLESS = str(Path(__file__).with_name("endless.py"))
VIDEO, OTHER = "198.19.0.1", "198.19.0.2"
# The port that Alt-Svc would have said: no report names it.
QUIC_PORT = 4433
PATIENCE_S = 10.0


@dataclass
class House:
    """A network whose traffic is all on line1 until something is steered, and a viewer who reports."""

    network: Network
    public: str

    def endless(self, node: str, *arguments: object) -> None:
        self.network.spawn(node, [sys.executable, ENDLESS, *map(str, arguments)], log="endless.log")

    def post(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        """One report from where the viewer is, with TLS checked against the run's authority."""

        def ask() -> list[dict[str, Any]]:
            context = ssl.create_default_context(cafile=str(self.network.certificates.ca))
            station = http.client.HTTPSConnection(STATION_IPV4, WEB_PORT, timeout=5, context=context)
            body = json.dumps({"reports": [report]})
            origin = {"Content-Type": "application/json", "Origin": "moz-extension://0b7f6a1e"}
            station.request("POST", "/reports", body, origin)
            answer = station.getresponse()
            text = answer.read().decode()
            station.close()
            assert answer.status == 200, text
            return json.loads(text)["messages"]

        return inside(self.network.viewers[0].namespace, ask)

    def starve(self, session_id: str, port: int) -> dict[str, Any]:
        """Reports 5 s of buffer twice a second until the network has steered; what the viewer is told."""
        deadline_s = time.monotonic() + PATIENCE_S
        number = 0
        while time.monotonic() < deadline_s:
            number += 1
            for message in self.post(report(session_id, number, port)):
                assert message["type"] != "rejection", message
                if message["type"] == "decision" and message["kind"] == "STEER":
                    return message
            time.sleep(0.5)
        raise AssertionError(f"nothing was steered for {session_id} in {PATIENCE_S:g} s")

    def leave(self, session_id: str, port: int) -> None:
        self.post(report(session_id, 1000, port, player_state="QUIT"))

    def down_bps(self, line: str, over_s: float = 2.0) -> float:
        """What comes out of a line towards the customers."""
        before = self.network.line_counters()[line]
        time.sleep(over_s)
        after = self.network.line_counters()[line]
        return (after.down_bytes - before.down_bytes) * 8 / over_s

    def steered(self, session_id: str) -> list[dict[str, Any]]:
        """The flows that the controller has moved for a session, by its own record."""
        text = (self.network.directory / "events.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        return [r for r in rows if r.get("session_id") == session_id and r.get("kind") == "STEER"]


def ends(moved: list[dict[str, Any]]) -> set[tuple[int, str, str, int]]:
    """What was moved, whatever the client's port."""
    flows = [decision["flow"] for decision in moved]
    return {(f["protocol"], f["client_address"], f["server_address"], f["server_port"]) for f in flows}


def report(session_id: str, number: int, port: int, **changes: Any) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "sequence_number": number,
        "timestamp_ms": 1_790_000_000_000 + 500 * number,
        "cause": "PERIODIC",
        "player_state": "PLAYING",
        "buffer_length_ms": 5000,
        "encoded_bitrate_kbps": 2700,
        "starved": False,
        "playback_rate": 1,
        "remaining_media_ms": 600_000,
        "stall_count": 0,
        "stall_duration_ms": 0,
        "player_name": "html5-video",
        "servers": [{"address": VIDEO, "port": port}],
    } | changes


@pytest.fixture(scope="module", params=[False, True], ids=["own-address", "behind-nat"])
def house(request: pytest.FixtureRequest) -> Generator[House]:
    nat = bool(request.param)
    topology = Topology.default(lines=3, nat=nat, ipv6=False)
    with Network.create(topology, f"web{os.getpid()}-{int(nat)}") as network:
        network.start_switches()
        network.start_controller(network.controller_settings(best_effort="single"))
        network.start_station(network.station_settings())
        public = network.plan.router.ipv4 if nat else network.viewers[0].ipv4
        made = House(network, public)
        made.endless("video-server", "serve", 22, 80, QUIC_PORT)
        made.endless("download-server", "serve", 80)
        time.sleep(0.5)
        made.endless("downloader", "watch", "tcp", OTHER, 80, 6)
        made.endless(network.viewers[0].name, "watch", "tcp", OTHER, 80)
        yield made


def test_a_web_report_moves_the_film(house: House) -> None:
    """Server and port are enough: the TCP connection to it leaves the crowd, and nothing else does."""
    house.endless(house.network.viewers[0].name, "watch", "tcp", VIDEO, 80)
    time.sleep(2.5)
    assert house.down_bps("line2") < 0.2e6
    told = house.starve("film", 80)
    assert told["from_line"] == "line1"
    moved = house.steered("film")
    assert ends(moved) == {(6, house.public, VIDEO, 80)}
    assert "translated" in moved[0]["reason"]
    assert house.down_bps(told["to_line"]) > 5e6
    house.leave("film", 80)


def test_quic_at_a_port_that_nobody_named(house: House) -> None:
    """Alt-Svc moved the film to UDP at another port; the report names the URL's, and it is found."""
    house.endless(house.network.viewers[0].name, "watch", "udp", VIDEO, QUIC_PORT)
    time.sleep(2.5)
    told = house.starve("quic", 443)
    moved = house.steered("quic")
    assert ends(moved) == {(17, house.public, VIDEO, QUIC_PORT)}
    assert house.down_bps(told["to_line"]) > 2.5e6
    house.leave("quic", 443)
