"""The operator's commands against a running controller."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

import grpc
from google.protobuf import json_format

from steerline.flow.v1 import flow_pb2
from steerline.steering.v1 import steering_pb2 as pb
from steerline.steering.v1 import steering_pb2_grpc as rpc
from steerline_contract import wire as words


class CommandError(RuntimeError):
    """What the controller answered, or that it did not."""


def execute(arguments: argparse.Namespace) -> str:
    """Does one operator's command; the text to show. Raises CommandError."""
    with _channel(arguments) as channel:
        stub = rpc.SteeringServiceStub(channel)
        try:
            return _COMMANDS[arguments.command](stub, arguments)
        except grpc.RpcError as error:
            raise CommandError(_explain(error, arguments.steering)) from None


def _channel(arguments: argparse.Namespace) -> grpc.Channel:
    if arguments.ca is None:
        return grpc.insecure_channel(arguments.steering)
    try:
        ca = arguments.ca.read_bytes()
    except OSError as error:
        raise CommandError(f"--ca {arguments.ca}: {error.strerror}") from None
    return grpc.secure_channel(arguments.steering, grpc.ssl_channel_credentials(ca))


def _explain(error: grpc.RpcError, target: str) -> str:
    if not isinstance(error, grpc.Call):
        return str(error)
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return f"no controller answers at {target} ({error.details()}); is it running? --steering names it"
    return str(error.details())


def _decisions(made: Iterable[flow_pb2.Decision]) -> str:
    return "\n".join(_decision(d) for d in made) or "nothing to change"


def _decision(message: flow_pb2.Decision) -> str:
    value = words.decision(message)
    what = str(value.flow) if value.flow else value.session_id or value.site
    way = f" {value.from_line or '-'} -> {value.to_line}" if value.to_line else ""
    return f"{value.kind.name.lower()} {what}{way}: {value.reason}"


def _steer(stub: rpc.SteeringServiceStub, a: argparse.Namespace) -> str:
    request = pb.SteerSessionRequest(session_id=a.session, line=a.line)
    return _decisions(stub.SteerSession(request, timeout=a.timeout).decisions)


def _pin(stub: rpc.SteeringServiceStub, a: argparse.Namespace) -> str:
    request = pb.PinSessionRequest(session_id=a.session, line=a.line)
    return _decisions(stub.PinSession(request, timeout=a.timeout).decisions)


def _release(stub: rpc.SteeringServiceStub, a: argparse.Namespace) -> str:
    request = pb.ReleaseSessionRequest(session_id=a.session)
    return _decisions(stub.ReleaseSession(request, timeout=a.timeout).decisions)


def _drain(stub: rpc.SteeringServiceStub, a: argparse.Namespace) -> str:
    request = pb.DrainLineRequest(site=a.site, line=a.line, drain=a.command == "drain")
    return _decisions(stub.DrainLine(request, timeout=a.timeout).decisions)


def _state(stub: rpc.SteeringServiceStub, a: argparse.Namespace) -> str:
    state = stub.GetState(pb.GetStateRequest(), timeout=a.timeout)
    if a.json:
        return json_format.MessageToJson(
            state, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    return "\n".join(_state_lines(state))


def _mbps(bps: int) -> str:
    return f"{bps / 1e6:.2f}"


def _state_lines(state: pb.GetStateResponse) -> Iterator[str]:
    yield f"strategy {state.strategy}"
    yield ""
    yield f"{'line':24} {'status':12} {'down/up of Mbit/s':>24} {'flows':>6}  protected for"
    for line in map(words.line_state, state.lines):
        rate = f"{_mbps(line.down_bps)}/{_mbps(line.up_bps)} of {_mbps(line.capacity_bps)}"
        protected = ", ".join(line.protected_session_ids)
        yield (
            f"{line.site + '/' + line.line:24} {line.status.name.lower():12} {rate:>24} "
            f"{line.flow_count:>6}  {protected}"
        )
    yield ""
    yield f"{'session':24} {'line':12} {'buffer s':>8} {'need Mbit/s':>12}  state"
    for session in state.sessions:
        flags = [name for name in ("critical", "protected", "pinned") if getattr(session, name)]
        yield (
            f"{session.session_id:24} {session.line or '-':12} {session.buffer_length_ms / 1000:>8.1f} "
            f"{_mbps(session.need_bps):>12}  {', '.join(flags) or '-'}"
        )
    yield ""
    yield f"{'line':12} {'down':>8} {'up':>8}  flow"
    for placed in state.flows:
        rates = f"{_mbps(placed.down_bps):>8} {_mbps(placed.up_bps):>8}"
        yield f"{placed.line:12} {rates}  {words.flow(placed.flow)}: {placed.reason}"


_COMMANDS: dict[str, Callable[[rpc.SteeringServiceStub, argparse.Namespace], str]] = {
    "steer": _steer,
    "pin": _pin,
    "release": _release,
    "drain": _drain,
    "undrain": _drain,
    "state": _state,
}
