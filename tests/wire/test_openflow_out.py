"""The fast way to bytes gives os-ken's own bytes."""

from __future__ import annotations

import ipaddress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from steerline_contract.flows import TCP, UDP, FiveTuple
from steerline_controller.shell.openflow import wire

PROTOCOL = ProtocolDesc(version=4)
ports = st.integers(0, 65535)
words = st.integers(0, 2**32 - 1)
cookies = st.integers(0, 2**64 - 1)
sides = st.sampled_from(["A", "B"])


@st.composite
def flows(draw: st.DrawFn) -> FiveTuple:
    """Any flow; ports only where the protocol has them."""
    addresses = st.ip_addresses(v=draw(st.sampled_from([4, 6])))
    protocol = draw(st.sampled_from([1, TCP, UDP, 44, 47, 58, 132]))
    has_ports = protocol in (TCP, UDP)
    return FiveTuple(
        protocol,
        draw(addresses),
        draw(ports) if has_ports else 0,
        draw(addresses),
        draw(ports) if has_ports else 0,
    )


def os_ken_match(flow: FiveTuple, side: str) -> Any:
    """The match in os-ken's words."""
    ends = ((flow.client, flow.client_port), (flow.server, flow.server_port))
    source, target = ends if side == "A" else ends[::-1]
    version = source[0].version
    match: dict[str, object] = {
        "eth_type": 0x0800 if version == 4 else 0x86DD,
        "ip_proto": flow.protocol,
        f"ipv{version}_src": str(source[0]),
        f"ipv{version}_dst": str(target[0]),
    }
    if flow.protocol in (TCP, UDP):
        name = "tcp" if flow.protocol == TCP else "udp"
        match |= {f"{name}_src": source[1], f"{name}_dst": target[1]}
    return parser.OFPMatch(**match)


def bytes_of(message: Any, xid: int) -> bytes:
    """A message serialised by os-ken."""
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


@given(words, flows(), sides, words, cookies, ports, st.booleans())
def test_place_flow(
    xid: int, flow: FiveTuple, side: Any, port: int, cookie: int, idle: int, notify: bool
) -> None:
    """FLOW_MOD ADD of a flow."""
    message = parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        table_id=1,
        idle_timeout=idle,
        priority=100,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        flags=ofp.OFPFF_SEND_FLOW_REM if notify else 0,
        match=os_ken_match(flow, side),
        instructions=[
            parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionOutput(port, 0xFFFF)])
        ],
    )
    assert wire.place_flow(xid, flow, side, port, cookie, idle, notify) == bytes_of(message, xid)


@given(words, flows(), sides)
def test_forget_flow(xid: int, flow: FiveTuple, side: Any) -> None:
    """FLOW_MOD DELETE_STRICT of a flow."""
    message = parser.OFPFlowMod(
        PROTOCOL,
        table_id=1,
        command=ofp.OFPFC_DELETE_STRICT,
        priority=100,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=os_ken_match(flow, side),
    )
    assert wire.forget_flow(xid, flow, side) == bytes_of(message, xid)


@given(words, cookies, cookies)
def test_delete_by_cookie(xid: int, cookie: int, mask: int) -> None:
    """FLOW_MOD DELETE by cookie."""
    message = parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        cookie_mask=mask,
        table_id=ofp.OFPTT_ALL,
        command=ofp.OFPFC_DELETE,
        priority=0,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(),
    )
    assert wire.delete_by_cookie(xid, cookie, mask) == bytes_of(message, xid)


@given(words, words, words, st.binary(max_size=2000))
def test_packet_out(xid: int, in_port: int, port: int, data: bytes) -> None:
    """PACKET_OUT."""
    message = parser.OFPPacketOut(
        PROTOCOL,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=in_port,
        actions=[parser.OFPActionOutput(port, 0xFFFF)],
        data=data,
    )
    assert wire.packet_out(xid, in_port, port, data) == bytes_of(message, xid)


@given(words, st.integers(0, 255), cookies, cookies)
def test_requests(xid: int, table: int, cookie: int, mask: int) -> None:
    """BARRIER_REQUEST, SET_CONFIG and the requests for counters."""
    set_config = parser.OFPSetConfig(PROTOCOL, ofp.OFPC_FRAG_NORMAL, 0xFFFF)
    assert wire.set_config(xid) == bytes_of(set_config, xid)
    assert wire.barrier(xid) == bytes_of(parser.OFPBarrierRequest(PROTOCOL), xid)
    flow_stats = parser.OFPFlowStatsRequest(
        PROTOCOL, 0, table, ofp.OFPP_ANY, ofp.OFPG_ANY, cookie, mask, parser.OFPMatch()
    )
    assert wire.flow_stats_request(xid, table, cookie, mask) == bytes_of(flow_stats, xid)
    port_stats = parser.OFPPortStatsRequest(PROTOCOL, 0, ofp.OFPP_ANY)
    assert wire.port_stats_request(xid) == bytes_of(port_stats, xid)


def test_fragments_look_as_the_switch_sees_them() -> None:
    """A UDP flow without ports matches ports 0, not all UDP between the two hosts."""
    one, two = ipaddress.ip_address("192.0.2.1"), ipaddress.ip_address("192.0.2.2")
    match = wire.match_of(FiveTuple(UDP, one, 0, two, 0), "A")
    assert bytes.fromhex("80001e020000" + "800020020000") in match
