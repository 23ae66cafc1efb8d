"""An agent in the hands of a measurement: says what it is told to, over the real report service.

    python -m steerline_testbed.measure.reporter --station 198.18.3.1:50051 --ca FILE --socket PATH

It runs in a customer's namespace, since the station believes only the address it sees. What to say
comes as JSON datagrams over a Unix socket, which no network namespace bounds.
"""

from __future__ import annotations

import argparse
import json
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2, report_pb2_grpc
from steerline_contract import wire
from steerline_contract.flows import FiveTuple
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause
from steerline_testbed.experiment.clock import unix_s

BITRATE_KBPS = 2728
GOAL_MS = 55_000


class Mouth:
    """The measurement's end: tells the reporter what to say."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def say(
        self, session_id: str, buffer_s: float, port: int, state: PlayerState = PlayerState.PLAYING
    ) -> None:
        """One report of a session whose paced flow ends at `port`."""
        order = {"session_id": session_id, "buffer_s": buffer_s, "port": port, "state": state.value}
        self._socket.sendto(json.dumps(order).encode(), self._path)

    def close(self) -> None:
        """Nothing more to say."""
        self._socket.close()


def paced_flow(client: str, client_port: int, server: str, server_port: int, protocol: int) -> FiveTuple:
    """The five-tuple of a paced flow."""
    return wire.flow(
        flow_pb2.FiveTuple(
            protocol=protocol,
            client_address=client,
            client_port=client_port,
            server_address=server,
            server_port=server_port,
        )
    )


def report(
    order: dict[str, object], number: int, flows: tuple[FiveTuple, ...], now_s: float
) -> PlaybackReport:
    """What a player of the experiments' video would say with this much buffer."""
    return PlaybackReport(
        session_id=str(order["session_id"]),
        sequence_number=number,
        timestamp_ms=int(now_s * 1000),
        cause=ReportCause.PERIODIC,
        player_state=PlayerState(order["state"]),
        buffer_length_ms=int(float(str(order["buffer_s"])) * 1000),
        encoded_bitrate_kbps=BITRATE_KBPS,
        top_bitrate_kbps=BITRATE_KBPS,
        target_buffer_ms=GOAL_MS,
        flows=flows,
        player_name="measurement",
    )


def main() -> int:
    """Speaks until it is ended."""
    parser = argparse.ArgumentParser(prog="reporter", description="reports what it is told to")
    parser.add_argument("--station", required=True)
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--client", required=True, help="own address")
    parser.add_argument("--server", required=True, help="address of the paced flows' sender")
    parser.add_argument("--server-port", type=int, required=True)
    parser.add_argument("--protocols", type=int, nargs="+", default=[17])
    options = parser.parse_args()
    requests: queue.Queue[report_pb2.ReportRequest] = queue.Queue()

    def outgoing() -> Iterator[report_pb2.ReportRequest]:
        while True:
            yield requests.get()

    channel = grpc.secure_channel(options.station, grpc.ssl_channel_credentials(options.ca.read_bytes()))
    stub = report_pb2_grpc.ReportServiceStub(channel)

    def listen() -> None:
        for response in stub.Report(outgoing()):
            if response.WhichOneof("message") == "rejection":
                print(f"rejected: {response.rejection.message}", file=sys.stderr, flush=True)

    threading.Thread(target=listen, daemon=True).start()
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(str(options.socket))
    numbers: dict[str, int] = {}
    while True:
        order = json.loads(inbox.recv(65536))
        number = numbers[order["session_id"]] = numbers.get(order["session_id"], 0) + 1
        ends = (options.client, order["port"], options.server, options.server_port)
        flows = tuple(paced_flow(*ends, protocol) for protocol in options.protocols)
        message = wire.playback_report_message(report(order, number, flows, unix_s()))
        requests.put(report_pb2.ReportRequest(report=message))


if __name__ == "__main__":
    sys.exit(main())
