# pyright: basic
"""Rules and groups to bytes through os-ken's own classes: the way for everything that is not hot."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from os_ken.ofproto import ofproto_v1_3 as ofp
    from os_ken.ofproto import ofproto_v1_3_parser as parser
    from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from steerline_controller.shell.openflow.rules import Action, Bucket, Group, GroupType, Output, Rule

_PROTOCOL = ProtocolDesc(version=ofp.OFP_VERSION)


def _bytes(message: Any, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _action(action: Action) -> object:
    if isinstance(action, Output):
        return parser.OFPActionOutput(action.port, action.max_len)
    return parser.OFPActionGroup(action.group_id)


def add_rule(rule: Rule, xid: int) -> bytes:
    """FLOW_MOD, ADD."""
    instructions = []
    if rule.actions:
        instructions.append(
            parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [_action(a) for a in rule.actions])
        )
    if rule.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(rule.goto))
    message = parser.OFPFlowMod(
        _PROTOCOL,
        cookie=rule.cookie,
        table_id=rule.table,
        command=ofp.OFPFC_ADD,
        idle_timeout=rule.idle_timeout,
        priority=rule.priority,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        flags=ofp.OFPFF_SEND_FLOW_REM if rule.notify_removed else 0,
        match=parser.OFPMatch(**rule.match),
        instructions=instructions,
    )
    return _bytes(message, xid)


def delete_rule(rule: Rule, xid: int) -> bytes:
    """FLOW_MOD, DELETE_STRICT."""
    message = parser.OFPFlowMod(
        _PROTOCOL,
        table_id=rule.table,
        command=ofp.OFPFC_DELETE_STRICT,
        priority=rule.priority,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(**rule.match),
    )
    return _bytes(message, xid)


def _bucket(bucket: Bucket, kind: GroupType) -> object:
    return parser.OFPBucket(
        weight=bucket.weight if kind is GroupType.SELECT else 0,
        watch_port=bucket.port if bucket.watch else ofp.OFPP_ANY,
        watch_group=ofp.OFPG_ANY,
        actions=[parser.OFPActionOutput(bucket.port, 0xFFFF)],
    )


def put_group(group: Group, xids: Iterable[int]) -> bytes:
    """GROUP_MOD twice: ADD (refused where the group exists, which is no error) and MODIFY.

    Whatever was there before, the group then is as wanted, and packets always find one.
    """
    out = b""
    for command, xid in zip((ofp.OFPGC_ADD, ofp.OFPGC_MODIFY), xids, strict=False):
        buckets = [_bucket(b, group.kind) for b in group.buckets]
        out += _bytes(parser.OFPGroupMod(_PROTOCOL, command, int(group.kind), group.group_id, buckets), xid)
    return out


def hello_failed(xid: int, text: str) -> bytes:
    """ERROR, HELLO_FAILED, INCOMPATIBLE, with the reason in words."""
    message = parser.OFPErrorMsg(
        _PROTOCOL,
        type_=ofp.OFPET_HELLO_FAILED,
        code=ofp.OFPHFC_INCOMPATIBLE,
        data=text.encode("ascii", "replace"),
    )
    return _bytes(message, xid)


def describe_error(kind: int, code: int) -> str:
    """The standard's names of an error's type and code."""
    names: Any = ofp  # os-ken adds these functions while it is imported
    return f"{names.ofp_error_type_to_str(kind)} {names.ofp_error_code_to_str(kind, code)}"
