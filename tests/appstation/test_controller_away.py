"""The station without its controller: it goes on, and catches up."""

from __future__ import annotations

from typing import Any

from steerline.flow.v1 import flow_pb2
from steerline.steering.v1 import steering_pb2

from .support import Controller, RunningStation, eventually, report


async def connected(station: RunningStation) -> bool:
    return (await station.get("/health"))[1]["controller"]["connected"]


async def test_controller_away_and_back(station: RunningStation, controller: Controller) -> None:
    """Agents are served while it is away; when it is back it hears of every live session at once."""
    async with station.agent() as agent:
        await agent.ask(report("a", 1, buffer_length_ms=10_000))
        assert (await controller.next()).critical
        await controller.stop()

        async def away() -> bool:
            return not await connected(station)

        await eventually(away)
        assert (await station.get("/health"))[1]["status"] == "degraded"
        assert (await agent.ask(report("a", 2, buffer_length_ms=9_000))).WhichOneof("message") == (
            "acknowledgement"
        )
        await controller.start()
        resent = await controller.next()
        assert (resent.session_id, resent.buffer_length_ms, resent.critical) == ("a", 9_000, True)
        assert resent.received_monotonic_ns == 0, "a resent assessment must not count as latency"
        await agent.ask(report("a", 3, buffer_length_ms=8_000))
        assert (await controller.next()).received_monotonic_ns > 0


async def test_station_starts_without_controller(start_station: Any) -> None:
    """A station that never saw a controller serves agents and REST, and says that it is degraded."""
    station: RunningStation = await start_station(steering_port=9)
    async with station.agent() as agent:
        await agent.ask(report(flows=[]))
    status, health = await station.get("/health")
    assert (status, health["status"], health["live_sessions"]) == (200, "degraded", 1)


async def test_latency_is_measured(station: RunningStation, controller: Controller) -> None:
    """Enforced gives n, p50, p99 and max; a time that makes no sense is not counted."""
    controller.enforce = True
    async with station.agent() as agent:
        for number in range(1, 101):
            await agent.ask(report(sequence_number=number))
        controller.say(
            steering_pb2.ConnectResponse(
                enforced=steering_pb2.Enforced(
                    session_id="s1", received_monotonic_ns=10, enforced_monotonic_ns=5
                )
            )
        )

        async def measured() -> Any:
            _, latency = await station.get("/latency")
            return latency if latency["enforced"]["n"] == 100 else None

        latency = await eventually(measured)
    enforced = latency["enforced"]
    assert 0 < enforced["p50_ms"] <= enforced["p99_ms"] <= enforced["max_ms"] < 1000
    assert latency["assessed"]["n"] == 100


async def test_lines_and_decisions_are_shown(station: RunningStation, controller: Controller) -> None:
    """What the controller tells of lines and decisions is in REST."""
    for down_bps in (1, 2):
        controller.say(
            steering_pb2.ConnectResponse(
                line_state=flow_pb2.LineState(
                    site="home",
                    line="line1",
                    capacity_bps=10_000_000,
                    status=flow_pb2.LINE_STATUS_UP,
                    down_bps=down_bps,
                )
            )
        )
    for number in range(3):
        controller.say(
            steering_pb2.ConnectResponse(
                decision=flow_pb2.Decision(
                    kind=flow_pb2.DECISION_KIND_STEER,
                    time_s=1000.0 + number + 1e9,
                    site="home",
                    session_id="s1" if number else "",
                    reason=f"reason {number}",
                    strategy="buffer-threshold",
                    flow=flow_pb2.FiveTuple(
                        protocol=1, client_address="198.18.1.11", server_address="198.19.0.1"
                    ),
                )
            )
        )

    async def stored() -> Any:
        # The decisions' own times are long ago, beyond retention: history keeps none of them.
        _, series = await station.get("/lines/home/line1")
        return series if len(series.get("series", [])) == 2 else None

    shown = await eventually(stored)
    assert [s["down_bps"] for s in shown["series"]] == [1, 2]
    assert shown["line"]["down_bps"] == 2
    assert [x["line"] for x in (await station.get("/lines"))[1]] == ["line1"]
