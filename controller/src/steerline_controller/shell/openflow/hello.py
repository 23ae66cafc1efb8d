"""Which versions a switch offers in its HELLO, and whether OpenFlow 1.3 is among them."""

from __future__ import annotations

import struct

from steerline_controller.shell.openflow.wire import VERSION

_NAMES = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}


def versions(message: bytes) -> tuple[set[int], bool]:
    """The versions offered, and whether they were listed: else the highest alone is known."""
    at = 8
    while at + 4 <= len(message):
        kind, length = struct.unpack_from("!HH", message, at)
        if length < 4 or at + length > len(message):
            break
        if kind == 1:  # OFPHET_VERSIONBITMAP
            words = struct.iter_unpack("!I", message[at + 4 : at + 4 + (length - 4) // 4 * 4])
            offered = {
                word * 32 + bit for word, (bits,) in enumerate(words) for bit in range(32) if bits >> bit & 1
            }
            return offered, True
        at += (length + 7) // 8 * 8
    return {message[0]}, False


def refusal(message: bytes) -> str:
    """Why a switch that says this HELLO cannot be spoken with; "" when it can."""
    offered, listed = versions(message)
    if VERSION in offered or (not listed and max(offered) > VERSION):
        return ""
    names = ", ".join(_NAMES.get(version, f"{version:#x}") for version in sorted(offered))
    kind = "offers" if listed else "offers at most"
    return (
        f"the switch {kind} OpenFlow {names or '(none)'}; allowed: 1.3 "
        "(Open vSwitch: ovs-vsctl set bridge BRIDGE protocols=OpenFlow13)"
    )
