"""A leased line: its own namespace, outside the switches.

    core                    namespace of the line                          core
    a-line1 ══ veth ══ to-a [htb + bfifo] ◄─ copy ─► [bfifo + htb] to-b ══ veth ══ b-line1

Each direction is shaped where it leaves the line: htb at the line's rate over a drop-tail queue in bytes.
Between the two ends stand nftables rules that copy each frame from one device to the other and drop the
original: a wire that looks at nothing. A bridge would pass the original on, and with it the sender's
account: all that Open vSwitch sends leaves through one socket, whose send buffer (212,992 bytes) the queues
of two lines fill; from there on the switch drops for every line, uncounted. (Measured: five lines of 10
Mbit/s loaded at once then carry 12 Mbit/s together.)

Where delay is asked for, frames go through a veth pair between the ends, whose two devices delay (netem), so
that waiting for the queue and travelling stay apart. Random loss is drawn in the same rules, before the
queue, without netem.
"""

from __future__ import annotations

from collections.abc import Iterator

from steerline_testbed.network import namespaces
from steerline_testbed.network.errors import TestbedError
from steerline_testbed.network.plan import Line
from steerline_testbed.network.tools import ip_batch, nft, no_offloads, tc_batch
from steerline_testbed.network.topology import FRAME_BYTES, LineSpec

NEAR_A = "to-a"
NEAR_B = "to-b"
DELAY_A = "delay-a"
DELAY_B = "delay-b"
_PRECISION = 1_000_000


def burst_bytes(spec: LineSpec) -> int:
    """What htb may send at once: 10 ms of the line, so that a late timer on a busy machine loses no rate."""
    return max(2 * FRAME_BYTES, spec.capacity_bps // 8 // 100)


def devices(spec: LineSpec) -> list[str]:
    """Devices in the line's namespace, lo aside."""
    return [NEAR_A, NEAR_B, *([DELAY_A, DELAY_B] if spec.delay_ms else [])]


def build(line: Line, core: str) -> None:
    """Make a line between the two ports in `core`; its namespace must be there."""
    step = f"build {line.name}"
    namespaces.set_sysctls(line.namespace, quiet_ipv6())
    ip_batch(line.namespace, list(_link_commands(line, core)), step)
    no_offloads(line.namespace, devices(line.spec), step)
    no_offloads(core, [line.port_a, line.port_b], step)
    tc_batch(line.namespace, list(_shaping_commands(line.spec)), step)
    nft(line.namespace, wire_rules(line.spec), step)


def quiet_ipv6() -> list[tuple[str, str]]:
    """Devices made from now on speak no IPv6 of their own accord."""
    return [("net/ipv6/conf/default/disable_ipv6", "1")] if namespaces.has_ipv6() else []


def _link_commands(line: Line, core: str) -> Iterator[str]:
    for device, port in ((NEAR_A, line.port_a), (NEAR_B, line.port_b)):
        yield f"link add {device} type veth peer name {port} netns {core}"
    if line.spec.delay_ms:
        yield f"link add {DELAY_A} type veth peer name {DELAY_B}"
    for device in devices(line.spec):
        yield f"link set dev {device} up"


def _shaping_commands(spec: LineSpec) -> Iterator[str]:
    burst = burst_bytes(spec)
    for device in (NEAR_A, NEAR_B):
        yield f"qdisc add dev {device} root handle 1: htb default 1"
        yield (
            f"class add dev {device} parent 1: classid 1:1 htb rate {spec.capacity_bps}bit "
            f"burst {burst} cburst {burst} quantum {FRAME_BYTES}"
        )
        yield f"qdisc add dev {device} parent 1:1 handle 10: bfifo limit {spec.queue_bytes}"
    if spec.delay_ms:
        # netem counts packets: room for twice what can travel of the smallest frames
        limit = max(1000, int(spec.capacity_bps / 8 / 64 * (spec.delay_ms + 4 * spec.jitter_ms) / 1000 * 2))
        for device in (DELAY_A, DELAY_B):
            jitter = f" {spec.jitter_ms}ms distribution normal" if spec.jitter_ms else ""
            yield f"qdisc add dev {device} root netem limit {limit} delay {spec.delay_ms}ms{jitter}"


def wire_rules(spec: LineSpec | None) -> str:
    """nftables rules of a whole wire; with None those of a broken one, through which nothing passes."""
    broken = spec is None
    hops: list[tuple[str, str, float]] = []
    if not broken:
        middle = (DELAY_A, DELAY_B) if spec.delay_ms else (NEAR_B, NEAR_A)
        hops += [(NEAR_A, middle[0], spec.loss), (NEAR_B, middle[1], spec.loss)]
        if spec.delay_ms:
            hops += [(DELAY_A, NEAR_A, 0), (DELAY_B, NEAR_B, 0)]
    chains = "".join(_hop(*hop) for hop in hops)
    # one transaction: the old wire is there until the new one is
    return f"table netdev wire\ndelete table netdev wire\ntable netdev wire {{\n{chains}}}\n"


def _hop(source: str, target: str, loss: float) -> str:
    draw = f"  numgen random mod {_PRECISION} < {round(loss * _PRECISION)} drop\n" if loss else ""
    return (
        f" chain from-{source} {{\n"
        f'  type filter hook ingress device "{source}" priority 0; policy drop\n'
        f'{draw}  dup to "{target}"\n }}\n'
    )


def cut(line: Line, how: str) -> None:
    """Cut the line: "carrier" lets both switches see their port go down, "silent" lets nothing through."""
    if how not in ("carrier", "silent"):
        raise TestbedError(f"how a line is cut is {how!r}; allowed: carrier, silent")
    if how == "carrier":
        ends = [f"link set dev {end} down" for end in (NEAR_A, NEAR_B)]
        ip_batch(line.namespace, ends, f"cut {line.name}")
    else:
        nft(line.namespace, wire_rules(None), f"cut {line.name}")


def restore(line: Line) -> None:
    """Undo either cut."""
    ends = [f"link set dev {end} up" for end in (NEAR_A, NEAR_B)]
    ip_batch(line.namespace, ends, f"restore {line.name}")
    nft(line.namespace, wire_rules(line.spec), f"restore {line.name}")
