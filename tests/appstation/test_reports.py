"""Agents over real gRPC with TLS: reports up, answers down."""

from __future__ import annotations

from .support import Controller, RunningStation, report


async def test_crossing_reaches_the_controller(station: RunningStation, controller: Controller) -> None:
    """The report that shows less than low makes the session critical at the controller and the agent."""
    async with station.agent() as agent:
        assert (await agent.ask(report(sequence_number=1))).acknowledgement.sequence_number == 1
        first = await controller.next()
        assert not first.critical
        assert [f.client_address for f in first.flows] == ["127.0.0.1"]
        assert first.received_monotonic_ns > 0
        await agent.send(report(sequence_number=2, buffer_length_ms=19_000))
        second = await controller.next()
        assert second.critical
        assert (second.low_ms, second.high_ms, second.time_to_live_ms) == (20_000, 35_000, 5_000)
        told = await agent.until("assessment")
        while not told.critical:
            told = await agent.until("assessment")
