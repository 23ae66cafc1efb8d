"""Agents over real gRPC with TLS: reports up, answers down."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from steerline.steering.v1 import steering_pb2
from steerline_appstation.shell.report_server import peer_address
from steerline_contract.flows import parse_address

from .support import Controller, RunningStation, eventually, report, tuple_


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


async def test_agent_behind_translation(station: RunningStation, controller: Controller) -> None:
    """A private address becomes the one the station sees, and the controller is told so."""
    async with station.agent() as agent:
        await agent.ask(report(flows=[tuple_("192.168.1.10", 41_000)]))
    assessment = await controller.next()
    assert assessment.translated
    assert [(f.client_address, f.client_port) for f in assessment.flows] == [("127.0.0.1", 41_000)]


async def test_controllers_words_go_down_the_sessions_stream(
    station: RunningStation, controller: Controller
) -> None:
    """Decision and advice reach the agent of that session, and no other agent."""
    async with station.agent() as mine, station.agent() as other:
        await mine.ask(report("mine"))
        await other.ask(report("other"))
        controller.say(
            steering_pb2.ConnectResponse(
                decision=flow_pb2.Decision(
                    kind=flow_pb2.DECISION_KIND_STEER, session_id="mine", reason="below low", to_line="line2"
                )
            )
        )
        controller.say(
            steering_pb2.ConnectResponse(
                advice=flow_pb2.NetworkAdvice(session_id="mine", sustainable_bps=800_000, reason="full")
            )
        )
        assert (await mine.until("decision")).to_line == "line2"
        assert (await mine.until("advice")).sustainable_bps == 800_000
        await other.ask(report("other", 2))
        with pytest.raises(TimeoutError):
            await other.until("decision", within_s=0.3)


async def test_nonsense_of_the_controller_is_survived(
    station: RunningStation, controller: Controller
) -> None:
    """A wrong message of the controller is dropped, the next good one counts."""
    async with station.agent() as agent:
        await agent.ask(report())
        controller.say(steering_pb2.ConnectResponse())
        controller.say(steering_pb2.ConnectResponse(decision=flow_pb2.Decision(session_id="s1")))
        controller.say(
            steering_pb2.ConnectResponse(
                advice=flow_pb2.NetworkAdvice(session_id="s1", sustainable_bps=-1, reason="?")
            )
        )
        controller.say(steering_pb2.ConnectResponse(line_state=flow_pb2.LineState(line="x", status=99)))  # type: ignore[arg-type]
        controller.say(
            steering_pb2.ConnectResponse(
                advice=flow_pb2.NetworkAdvice(session_id="s1", sustainable_bps=1, reason="good")
            )
        )
        assert (await agent.until("advice")).reason == "good"


async def test_many_sessions_on_one_stream(station: RunningStation, controller: Controller) -> None:
    """One agent reports 200 sessions; each gets its acknowledgement and its assessment."""
    async with station.agent() as agent:
        for number in range(200):
            await agent.send(report(f"p{number}"))
        acknowledged: set[str] = set()
        while len(acknowledged) < 200:
            acknowledged.add((await agent.until("acknowledgement")).session_id)
        assessed: set[str] = set()
        while len(assessed) < 200:
            assessed.add((await controller.next()).session_id)


async def test_assessment_at_least_each_five_seconds(station: RunningStation) -> None:
    """Without a change the agent hears of its assessment at once, and then not with each report."""
    async with station.agent() as agent:
        await agent.send(report(sequence_number=1))
        await agent.until("assessment")
        for number in range(2, 6):
            await agent.send(report(sequence_number=number))
        with pytest.raises(TimeoutError):
            await agent.until("assessment", within_s=0.5)


async def test_a_stream_that_ends_is_answered_to_the_end(station: RunningStation) -> None:
    """An agent that has said all still gets all answers, and an OK."""
    async with station.agent() as agent:
        for number in range(1, 51):
            await agent.send(report(sequence_number=number))
        await agent.call.done_writing()
        for number in range(1, 51):
            assert (await agent.until("acknowledgement")).sequence_number == number
        assert await agent.call.code() == grpc.StatusCode.OK


async def test_a_session_goes_on_over_another_stream(station: RunningStation, controller: Controller) -> None:
    """An agent that connects again goes on with its session; decisions go to the new stream."""
    async with station.agent() as first:
        await first.ask(report(sequence_number=1))
    async with station.agent() as second:
        await second.ask(report(sequence_number=2))
        controller.say(
            steering_pb2.ConnectResponse(
                decision=flow_pb2.Decision(kind=flow_pb2.DECISION_KIND_KEEP, session_id="s1", reason="fine")
            )
        )
        assert (await second.until("decision")).reason == "fine"


async def test_replayed_reports_are_kept_not_assessed(
    station: RunningStation, controller: Controller
) -> None:
    """What an agent kept while the station was away is acknowledged and stored; nobody is steered by it."""
    async with station.agent() as agent:
        await agent.ask(report(sequence_number=9))
        await controller.next()
        late = report(sequence_number=3, buffer_length_ms=1000, cause=report_pb2.REPORT_CAUSE_REPLAYED)
        assert (await agent.ask(late)).WhichOneof("message") == "acknowledgement"
        await agent.ask(report(sequence_number=10))
        assert not (await controller.next()).critical

        async def stored() -> list[int]:
            _, answer = await station.get("/sessions/s1")
            numbers = [s["sequence_number"] for s in answer["series"]]
            return numbers if len(numbers) == 3 else []

        assert await eventually(stored) == [3, 9, 10]


async def test_silence_ends_the_session(controller: Controller, start_station: Any) -> None:
    """A session whose reports stop is over after report_timeout_s, with the reason in history."""
    station: RunningStation = await start_station(steering_port=controller.port, report_timeout_s=1.0)
    async with station.agent() as agent:
        await agent.ask(report(flows=[]))
        status, answer = await station.get("/sessions")
        assert (status, [s["session_id"] for s in answer]) == (200, ["s1"])

        async def ended() -> str:
            _, answer = await station.get("/sessions?ended=true")
            return answer[0]["ended_reason"] if answer and not answer[0]["live"] else ""

        assert await eventually(ended) == "no report for 1 s"
        assert (await station.get("/sessions"))[1] == []


async def test_an_agent_that_does_not_read_disturbs_no_one(
    station: RunningStation, controller: Controller
) -> None:
    """Its answers are dropped, its reports still count, and other agents get theirs."""
    async with station.agent() as deaf, station.agent() as other:
        for number in range(1, 1500):
            await deaf.send(report("deaf", number))
        assert (await other.ask(report("other"))).WhichOneof("message") == "acknowledgement"
        async with asyncio.timeout(10):
            while (await controller.next()).session_id != "other":
                pass


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:198.18.1.11:4711", "198.18.1.11"),
        ("ipv6:%5Bfd5e:1::11%5D:4711", "fd5e:1::11"),
        ("ipv6:[::1]:4711", "::1"),
        ("ipv6:%5B::ffff:198.18.1.11%5D:4711", "198.18.1.11"),
        ("ipv6:%5Bfe80::1%25eth0%5D:4711", "fe80::1"),
    ],
)
def test_peer_address(peer: str, address: str) -> None:
    """gRPC's words for a peer give its address."""
    assert peer_address(peer) == parse_address(address)
