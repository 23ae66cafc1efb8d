"""A leased line: its own namespace, outside the switches.

    core                    namespace of the line                          core
    a-line1 ══ veth ══ to-a [htb + bfifo] ── bridge ── [bfifo + htb] to-b ══ veth ══ b-line1

Each direction is shaped where it leaves the line: htb at the line's rate over a drop-tail queue in bytes.
Where delay is asked for, a second bridge stands between, joined to the first by a veth pair whose two ends
delay (netem), so that waiting for the queue and travelling stay apart. Random loss is drawn in nftables before
the queue, without netem.
"""

from __future__ import annotations

from collections.abc import Iterator

from steerline_testbed.network import namespaces
from steerline_testbed.network.plan import Line
from steerline_testbed.network.tools import call, ip_batch, nft, no_offloads, tc_batch
from steerline_testbed.network.topology import FRAME_BYTES, LineSpec

NEAR_A = "to-a"
NEAR_B = "to-b"
_PRECISION = 1_000_000


def burst_bytes(spec: LineSpec) -> int:
    """What htb may send at once: 10 ms of the line, so that a late timer on a busy machine loses no rate."""
    return max(2 * FRAME_BYTES, spec.capacity_bps // 8 // 100)


def build(line: Line, core: str) -> None:
    """Make a line between the two ports in `core`; its namespace must be there."""
    step = f"build {line.name}"
    namespaces.set_sysctls(line.namespace, quiet_ipv6())
    ip_batch(line.namespace, list(_link_commands(line, core)), step)
    inner = ["delay-a", "delay-b"] if line.spec.delay_ms else []
    no_offloads(line.namespace, [NEAR_A, NEAR_B, *inner], step)
    no_offloads(core, [line.port_a, line.port_b], step)
    tc_batch(line.namespace, list(_shaping_commands(line.spec)), step)
    if line.spec.loss:
        nft(line.namespace, _loss_rules(line.spec.loss), f"random loss on {line.name}")


def quiet_ipv6() -> list[tuple[str, str]]:
    """Devices made from now on speak no IPv6 of their own accord."""
    return [("net/ipv6/conf/default/disable_ipv6", "1")] if namespaces.has_ipv6() else []


def _link_commands(line: Line, core: str) -> Iterator[str]:
    bridges = ["line-a", "line-b"] if line.spec.delay_ms else ["line-a"]
    for bridge in bridges:
        options = "stp_state 0 forward_delay 0 mcast_snooping 0 group_fwd_mask 0xfff8"
        yield f"link add {bridge} type bridge {options}"
        yield f"link set dev {bridge} up"
    for device, port, bridge in ((NEAR_A, line.port_a, bridges[0]), (NEAR_B, line.port_b, bridges[-1])):
        yield f"link add {device} type veth peer name {port} netns {core}"
        yield f"link set dev {device} master {bridge}"
        yield _wire(device)
    if line.spec.delay_ms:
        yield "link add delay-a type veth peer name delay-b"
        yield "link set dev delay-a master line-a"
        yield "link set dev delay-b master line-b"
        yield _wire("delay-a")
        yield _wire("delay-b")
        yield "link set dev delay-a up"
        yield "link set dev delay-b up"
    for device in (NEAR_A, NEAR_B):
        yield f"link set dev {device} up"


def _wire(device: str) -> str:
    """A wire learns no addresses: what comes in at one end goes out at the other."""
    return f"link set dev {device} type bridge_slave learning off"


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
        # netem counts packets: room for twice what can travel, in the smallest frames a line carries in
        # number
        limit = max(1000, int(spec.capacity_bps / 8 / 64 * (spec.delay_ms + 4 * spec.jitter_ms) / 1000 * 2))
        for device in ("delay-a", "delay-b"):
            jitter = f" {spec.jitter_ms}ms distribution normal" if spec.jitter_ms else ""
            yield f"qdisc add dev {device} root netem limit {limit} delay {spec.delay_ms}ms{jitter}"


def _loss_rules(loss: float) -> str:
    lost = round(loss * _PRECISION)
    # With a second bridge a frame passes the hook twice: only where it came from a switch does it count.
    return (
        "table bridge steerline {\n"
        " chain loss {\n"
        "  type filter hook forward priority 0; policy accept\n"
        f'  iifname {{ "{NEAR_A}", "{NEAR_B}" }} numgen random mod {_PRECISION} < {lost} counter drop\n'
        " }\n}\n"
    )


def cut(line: Line, how: str) -> None:
    """Cut the line: "carrier" lets both switches see their port go down, "silent" lets nothing through."""
    if how == "carrier":
        ip_batch(line.namespace, [f"link set dev {end} down" for end in (NEAR_A, NEAR_B)], f"cut {line.name}")
    else:
        for end in (NEAR_A, NEAR_B):
            _bridge_port_state(line, end, 0)


def restore(line: Line) -> None:
    """Undo either cut."""
    ip_batch(line.namespace, [f"link set dev {end} up" for end in (NEAR_A, NEAR_B)], f"restore {line.name}")
    for end in (NEAR_A, NEAR_B):
        _bridge_port_state(line, end, 3)


def _bridge_port_state(line: Line, device: str, state: int) -> None:
    argv = ["bridge", "-n", line.namespace, "link", "set", "dev", device, "state", str(state)]
    call(argv, f"set {device} of {line.name} to bridge state {state}")
