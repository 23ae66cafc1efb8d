"""The part of a measurement that runs in the namespace of controller and station.

    python -m steerline_testbed.measure.worker crossings|moves --out FILE ...

Writes JSON lines, one per crossing or move, as they happen, so that an interrupted measurement keeps
what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import grpc

from steerline.steering.v1 import steering_pb2, steering_pb2_grpc
from steerline_contract import wire
from steerline_contract.flows import FiveTuple
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Enforced
from steerline_testbed.measure.reporter import Mouth
from steerline_testbed.measure.sniff import Sniffer

PATIENCE_S = 3.0


class Listener:
    """A second ear on the steering service: hears every Enforced."""

    def __init__(self, stub: steering_pb2_grpc.SteeringServiceStub) -> None:
        self._heard: queue.Queue[Enforced] = queue.Queue()
        threading.Thread(target=self._listen, args=(stub,), daemon=True).start()

    def _listen(self, stub: steering_pb2_grpc.SteeringServiceStub) -> None:
        forever = threading.Event()

        def silent() -> Iterator[steering_pb2.ConnectRequest]:
            forever.wait()
            yield from ()

        try:
            for response in stub.Connect(silent()):
                if response.WhichOneof("message") == "enforced":
                    self._heard.put(wire.enforced(response.enforced))
        except grpc.RpcError as error:
            print(f"steering service: {error}", file=sys.stderr)

    def next(self, session_id: str) -> Enforced | None:
        """The next one of a session; None when none comes in time."""
        until = time.monotonic() + PATIENCE_S
        while (left := until - time.monotonic()) > 0:
            try:
                heard = self._heard.get(timeout=left)
            except queue.Empty:
                return None
            if heard.session_id == session_id:
                return heard
        return None


def _write(out: TextIO, **fields: object) -> None:
    out.write(json.dumps(fields) + "\n")
    out.flush()


def _find(stub: steering_pb2_grpc.SteeringServiceStub, end: str) -> tuple[FiveTuple, str]:
    """The paced flow that ends at this address and port, and its line."""
    until = time.monotonic() + 10 * PATIENCE_S
    while time.monotonic() < until:
        for placed in stub.GetState(steering_pb2.GetStateRequest()).flows:
            flow = wire.flow(placed.flow)
            if flow.protocol == 17 and f"{flow.client}:{flow.client_port}" == end:
                return flow, placed.line
        time.sleep(0.2)
    raise SystemExit(f"the controller knows no UDP flow to {end}")


def _crowded(stub: steering_pb2_grpc.SteeringServiceStub) -> str:
    """The line with the most flows that carry bytes."""
    state = stub.GetState(steering_pb2.GetStateRequest())
    counts = {line.line: 0 for line in state.lines}
    for flow in state.flows:
        counts[flow.line] += flow.down_bps > 20_000
    return max(counts, key=lambda line: (counts[line], line))


def crossings(options: argparse.Namespace, stub: steering_pb2_grpc.SteeringServiceStub, out: TextIO) -> None:
    """Crossings of the threshold, each by a new session of the same flow from the most crowded line.

    A first session is there for the operator to put the flow on that line, and quits; so the flow is
    best effort when the second one crosses, and the crossing always has a rule to write.
    """
    mouth = Mouth(options.socket)
    ear = Listener(stub)
    sniffer = Sniffer(dict(pair.split("=") for pair in options.ports.split(",")), options.server_port)
    _find(stub, f"{options.client}:{options.port}")
    for number in range(1, options.count + 1):
        placing, crossing = (f"{kind}-{os.getpid()}-{number}" for kind in ("placing", "crossing"))
        crowded = _crowded(stub)
        mouth.say(placing, 45.0, options.port)
        _until_known(stub, placing)
        stub.SteerSession(steering_pb2.SteerSessionRequest(session_id=placing, line=crowded))
        mouth.say(placing, 45.0, options.port, PlayerState.QUIT)
        mouth.say(crossing, 45.0, options.port)
        _until_known(stub, crossing)
        time.sleep(options.gap)
        sniffer.forget()
        mouth.say(crossing, 19.0, options.port)
        heard = ear.next(crossing)
        if heard is None:
            _write(out, number=number, missed=True)
        else:
            _, line = _find(stub, f"{options.client}:{options.port}")
            first = _first(sniffer, line, heard) if line != crowded else None
            _write(
                out,
                number=number,
                from_line=crowded,
                to_line=line,
                moved_flows=heard.moved_flow_count,
                barrier_ms=(heard.enforced_monotonic_ns - heard.received_monotonic_ns) / 1e6,
                first_packet_ms=None if first is None else (first - heard.received_monotonic_ns) / 1e6,
            )
        mouth.say(crossing, 45.0, options.port, PlayerState.QUIT)
    sniffer.close()


def _until_known(stub: steering_pb2_grpc.SteeringServiceStub, session_id: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        state = stub.GetState(steering_pb2.GetStateRequest())
        if any(s.session_id == session_id for s in state.sessions):
            return
        time.sleep(0.005)
    raise SystemExit(f"session {session_id} did not reach the controller")


def _first(sniffer: Sniffer, line: str, heard: Enforced) -> int | None:
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        first = sniffer.first_after(line, heard.received_monotonic_ns)
        if first is not None:
            return first
        time.sleep(0.001)
    return None


def moves(options: argparse.Namespace, stub: steering_pb2_grpc.SteeringServiceStub, out: TextIO) -> None:
    """Moves a session's flows from line to line by the operator's word."""
    mouth = Mouth(options.socket)
    session = "moving"
    _find(stub, f"{options.client}:{options.port}")
    lines = [pair.split("=")[0] for pair in options.ports.split(",")]
    spoken = 0.0
    for number in range(1, options.count + 1):
        if time.monotonic() - spoken > 1.0:
            spoken = time.monotonic()
            mouth.say(session, 45.0, options.port)
            _until_known(stub, session)
        line = lines[number % len(lines)]
        stub.SteerSession(steering_pb2.SteerSessionRequest(session_id=session, line=line))
        _write(out, number=number, to_line=line, at_ns=time.monotonic_ns())
        time.sleep(options.gap)


def main() -> int:
    """Runs one kind to its end."""
    parser = argparse.ArgumentParser(prog="worker", description="crossings or moves, counted")
    parser.add_argument("kind", choices=("crossings", "moves"))
    parser.add_argument("--steering", default="127.0.0.1:50052")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--client", required=True, help="the customer's address")
    parser.add_argument("--port", type=int, required=True, help="the paced flow's client port")
    parser.add_argument("--server-port", type=int, required=True)
    parser.add_argument("--ports", required=True, help="line=port of B, comma separated")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--gap", type=float, default=0.1, help="seconds between a move and the next")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with grpc.insecure_channel(options.steering) as channel, options.out.open("a", encoding="utf-8") as out:
        stub = steering_pb2_grpc.SteeringServiceStub(channel)
        {"crossings": crossings, "moves": moves}[options.kind](options, stub, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
