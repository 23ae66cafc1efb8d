# pyright: basic
"""The only file that knows os-ken (beside `encode`). The rest sees inputs and channels.

os-ken keeps the handshake, the echo, ports and errors, through its app, handlers and parsers. Three
of its habits are changed here:

* its hub swallows what a handler raises: here that ends the process, with the trace;
* it reads a message with two calls and makes objects of it: here the hot ones leave as bytes;
* its send queue of 16 blocks the sender behind a slow switch: here `channel.Sender`.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import structlog

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from os_ken import cfg
    from os_ken.base import app_manager
    from os_ken.controller import controller, ofp_event
    from os_ken.controller.handler import (
        CONFIG_DISPATCHER,
        DEAD_DISPATCHER,
        HANDSHAKE_DISPATCHER,
        MAIN_DISPATCHER,
        set_ev_cls,
    )
    from os_ken.exception import OSKenException
    from os_ken.lib import hub
    from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser
    from os_ken.ofproto.ofproto_parser import msg as parse_message

from steerline_controller.shell.inputs import Inbox, PortInfo, PortNews, Raw, SwitchDown, SwitchUp
from steerline_controller.shell.openflow import dial, encode, hello, wire
from steerline_controller.shell.openflow.channel import MAX_PENDING, Sender
from steerline_controller.shell.openflow.refusals import Refusals

LOG = structlog.get_logger()

ECHO_INTERVAL_S = 1.0
MAX_UNREPLIED_ECHOES = 3
HANDSHAKE_S = 10.0
MAX_MESSAGE = 65535

_PORT_STATUS: Any = ofp_event.EventOFPPortStatus  # pyright: ignore[reportAttributeAccessIssue]
# What os-ken's parsers and handlers raise when a switch sends nonsense, or sense out of turn.
_BAD_MESSAGE = (
    struct.error,
    AssertionError,
    OSKenException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)
_HOT = frozenset((wire.PACKET_IN, wire.FLOW_REMOVED, wire.MULTIPART_REPLY, wire.BARRIER_REPLY, wire.ERROR))


_refusals = Refusals()


def die(where: str) -> NoReturn:
    """Ends the process with the trace of the exception at hand: a supervisor starts it again."""
    sys.stderr.write(f"steerline-controller: unexpected error in {where}; ending the process\n")
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(70)  # EX_SOFTWARE


class _GuardedThread(hub.HubThread):
    """A hub thread whose exceptions end the process, and which does not keep it alive."""

    def __init__(self, target: Callable[..., object], args: tuple = (), kwargs: dict | None = None) -> None:
        super().__init__(target, args, kwargs if kwargs is not None else {})
        self.daemon = True

    def run(self) -> None:
        try:
            threading.Thread.run(self)
        except BaseException:  # noqa: BLE001 - nothing may end a thread quietly
            die(f"os-ken thread {self.name}")


class SwitchConnection(controller.Datapath):
    """os-ken's datapath with its own receive and send. Also the `Channel` that the shell sees."""

    inbox: Inbox
    ofp_brick: Any
    id: Any
    ports: Any
    allowed: Callable[[int], str]

    def __init__(self, connection: socket.socket, address: tuple) -> None:
        super().__init__(connection, address)
        self._sender = Sender(connection)
        self._announced = False
        self._reason = "the switch closed the connection"
        self.peer = ":".join(map(str, address[:2]))

    # ------------------------------------------------------------ Channel

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Sends whole messages; os-ken's own go the same way."""
        done = self._sender.send(bytes(buf))
        if close_socket:
            self._sender.close()
        return done

    def close(self) -> None:
        """Ends the connection."""
        if self.state not in (None, DEAD_DISPATCHER) and self.unreplied_echo_requests[MAX_UNREPLIED_ECHOES:]:
            self._reason = f"no answer to {MAX_UNREPLIED_ECHOES} echo requests"
        super().close()
        self.send_q = None
        self._sender.close()

    def _close_write(self) -> None:
        self._sender.close()

    # ------------------------------------------------------------ life

    def set_state(self, state: str) -> None:
        """Tells the inbox before os-ken's own observers: nothing hot can come earlier."""
        if state == MAIN_DISPATCHER and self.state == CONFIG_DISPATCHER:
            refusal = type(self).allowed(self.id)
            if refusal:
                self._reason = refusal
                state = DEAD_DISPATCHER
            else:
                ports = {
                    port.name.decode("utf-8", "replace"): _port_info(port) for port in self.ports.values()
                }
                self._announced = True
                self.inbox.put(SwitchUp(self, self.id, ports))
        super().set_state(state)

    def serve(self) -> None:
        """Runs the connection to its end."""
        sender = hub.spawn(self._sender.run)
        self.send_msg(self.ofproto_parser.OFPHello(self))
        watchdog = threading.Timer(HANDSHAKE_S, self._handshake_over)
        watchdog.daemon = True
        watchdog.start()
        echo = hub.spawn(self._echo_request_loop)
        try:
            self._recv_loop()
        finally:
            watchdog.cancel()
            self.close()
            self.socket.close()
            self.is_active = False
            if self._sender.overflowed:
                self._reason = f"it took nothing while {MAX_PENDING} bytes waited"
            if self._announced:
                self.inbox.put(SwitchDown(self, self._reason))
            hub.joinall([sender, echo])

    def _handshake_over(self) -> None:
        if self.state in (HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER):
            LOG.warning("a connection said no hello: closed", peer=self.peer, after_s=HANDSHAKE_S)
            self.close()

    def _echo_request_loop(self) -> None:
        # The base class begins at once; before the handshake is over echoes only confuse.
        while self.state in (HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER):
            hub.sleep(0.1)
        super()._echo_request_loop()

    # ------------------------------------------------------------ receiving

    def _recv_loop(self) -> None:
        buffer = bytearray()
        while self.state != DEAD_DISPATCHER:
            try:
                data = self.socket.recv(262144)
            except OSError:
                return
            if not data:
                return
            buffer += data
            try:
                used = self._take(buffer)
            except _BAD_MESSAGE as error:
                LOG.warning(
                    "a switch sent what is not OpenFlow 1.3: connection closed",
                    peer=self.peer,
                    error=str(error) or type(error).__name__,
                )
                self._reason = "it sent a malformed message"
                return
            del buffer[:used]

    def _take(self, buffer: bytearray) -> int:
        """Handles every whole message in the buffer; the number of bytes used."""
        at, end = 0, len(buffer)
        while end - at >= 8 and self.state != DEAD_DISPATCHER:
            version, kind, length, xid = struct.unpack_from("!BBHI", buffer, at)
            if length < 8:
                raise ValueError(f"a message of {length} bytes")
            if self.state == HANDSHAKE_DISPATCHER and kind not in (wire.HELLO, wire.ERROR):
                raise ValueError(f"message type {kind} before hello")
            if end - at < length:
                break
            message = bytes(buffer[at : at + length])
            at += length
            if kind in _HOT and self.state == MAIN_DISPATCHER:
                self.inbox.put(Raw(self, message, time.monotonic_ns()))
            else:
                self._hand_to_os_ken(version, kind, length, xid, message)
        return at

    def _hand_to_os_ken(self, version: int, kind: int, length: int, xid: int, message: bytes) -> None:
        if self.state == HANDSHAKE_DISPATCHER and kind == wire.HELLO:
            refusal = hello.refusal(message)
            if refusal:
                self.send(encode.hello_failed(xid, refusal), close_socket=True)
                self.refused(refusal)
                self.set_state(DEAD_DISPATCHER)
                return
        if self.state != HANDSHAKE_DISPATCHER and version != wire.VERSION:
            raise ValueError(f"version {version:#x} after 0x4 was agreed")
        parsed = parse_message(self, version, kind, length, xid, message)
        if parsed is None:
            raise ValueError(f"message type {kind} cannot be read")
        event = ofp_event.ofp_msg_to_ev(parsed)
        self.ofp_brick.send_event_to_observers(event, self.state)
        for handler in list(self.ofp_brick.get_handlers(event, self.state)):
            handler(event)

    def refused(self, why: str) -> None:
        """Says, once per peer and reason in a while, why a switch is turned away."""
        _refusals.say(self.peer if self.address[0] == "unix" else self.address[0], why)


def _port_info(port: ofproto_v1_3_parser.OFPPort) -> PortInfo:
    down = port.state & ofproto_v1_3.OFPPS_LINK_DOWN or port.config & ofproto_v1_3.OFPPC_PORT_DOWN
    return PortInfo(port.port_no, not down)


class SteerlineApp(app_manager.OSKenApp):
    """The os-ken app: pins the version, and passes on what os-ken parses."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]  # noqa: RUF012 - os-ken's interface

    @set_ev_cls(_PORT_STATUS, MAIN_DISPATCHER)
    def port_status(self, event: ofp_event.EventOFPMsgBase) -> None:
        """PORT_STATUS."""
        try:
            message = event.msg
            name = message.desc.name.decode("utf-8", "replace")
            gone = message.reason == ofproto_v1_3.OFPPR_DELETE
            channel = message.datapath
            channel.inbox.put(PortNews(channel, name, None if gone else _port_info(message.desc)))
        except Exception:  # noqa: BLE001 - os-ken would only log it
            die("port_status")


class OpenFlowServer:
    """Listens for switches and feeds the inbox. One per process: os-ken keeps global state."""

    def __init__(
        self,
        listen: tuple[str, int],
        inbox: Inbox,
        allowed: Callable[[int], str],
        connect: tuple[dial.Target, ...] = (),
    ) -> None:
        """Binds at once. Raises OSError.

        `allowed`: "" for a datapath id that may connect, else why not. `connect`: switches that
        listen; they are connected to, and again when lost.
        """
        host, port = listen
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._connect = connect
        SwitchConnection.inbox = inbox
        SwitchConnection.allowed = staticmethod(_saying(allowed))

    def start(self) -> None:
        """Starts os-ken with our app, and its threads."""
        cfg.CONF(args=[], project="steerline-controller", default_config_files=[], default_config_dirs=[])
        cfg.CONF.set_override("echo_request_interval", ECHO_INTERVAL_S)
        cfg.CONF.set_override("maximum_unreplied_echo_requests", MAX_UNREPLIED_ECHOES)
        cfg.CONF.set_override("ofp_tcp_listen_port", self.address[1])
        hub.HubThread = _GuardedThread
        controller.datapath_connection_factory = _serve
        controller.StreamServer = self._stream_server
        manager = app_manager.AppManager.get_instance()
        manager.load_apps([__name__])
        manager.instantiate_apps(**manager.create_contexts())
        for target in self._connect:
            hub.spawn(dial.keep_connected, target, _serve)

    def _stream_server(self, _address: object, handle: Callable[..., object]) -> OpenFlowServer:
        self._handle = handle
        return self

    def serve_forever(self) -> None:
        """Accepts switches until closed. Called by os-ken."""
        while True:
            try:
                connection, address = self._listener.accept()
            except OSError as error:
                if self._listener.fileno() < 0:
                    return
                LOG.error("cannot accept a switch", error=str(error))
                time.sleep(0.2)
                continue
            hub.spawn(_serve, connection, address)

    def close(self) -> None:
        """Takes no more switches."""
        self._listener.close()


def _saying(allowed: Callable[[int], str]) -> Callable[[int], str]:
    def check(datapath_id: int) -> str:
        why = allowed(datapath_id)
        if why:
            _refusals.say(f"{datapath_id:016x}", why)
        return why

    return check


def _serve(connection: socket.socket, address: tuple) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        switch = SwitchConnection(connection, address)
    except OSError:
        connection.close()
        return
    switch.serve()
