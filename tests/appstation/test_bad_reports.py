"""Wrong reports: each is answered with what was wrong, and disturbs nothing else."""

from __future__ import annotations

import math
from typing import Any, cast

import grpc
import pytest

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2

from .support import Controller, RunningStation, report, tuple_

INVALID = report_pb2.REJECTION_REASON_INVALID
FOREIGN = report_pb2.REJECTION_REASON_FOREIGN
OUT_OF_ORDER = report_pb2.REJECTION_REASON_OUT_OF_ORDER


@pytest.mark.parametrize(
    ("fields", "reason", "field", "words"),
    [
        ({"buffer_length_ms": -1}, INVALID, "buffer_length_ms", "0 to 86400000 ms"),
        ({"buffer_length_ms": 86_400_001}, INVALID, "buffer_length_ms", "0 to 86400000 ms"),
        ({"encoded_bitrate_kbps": -5}, INVALID, "encoded_bitrate_kbps", "0 to 10000000"),
        ({"remaining_media_ms": -1}, INVALID, "remaining_media_ms", "0 to"),
        ({"playback_rate": math.nan}, INVALID, "playback_rate", "0 to 16"),
        ({"playback_rate": math.inf}, INVALID, "playback_rate", "0 to 16"),
        ({"playback_rate": -1.0}, INVALID, "playback_rate", "0 to 16"),
        ({"player_state": 42}, INVALID, "player_state", "PLAYING"),
        ({"player_state": 0}, INVALID, "player_state", "PLAYING"),
        ({"cause": 42}, INVALID, "cause", "PERIODIC"),
        ({"sequence_number": 0}, INVALID, "sequence_number", "1 or more"),
        ({"sequence_number": 1}, OUT_OF_ORDER, "sequence_number", "more than 1"),
        ({"timestamp_ms": 1}, OUT_OF_ORDER, "timestamp_ms", "backwards"),
        ({"timestamp_ms": -1}, INVALID, "timestamp_ms", "0 to"),
        ({"session_id": ""}, INVALID, "session_id", "1 to 64"),
        ({"session_id": "a b"}, INVALID, "session_id", "1 to 64"),
        ({"session_id": "x" * 100_000}, INVALID, "session_id", "1 to 64"),
        ({"player_name": "x" * 65}, INVALID, "player_name", "at most 64"),
        ({"player_name": "a\nb"}, INVALID, "player_name", "printable"),
        ({"flows": [tuple_(client_port=p) for p in range(33)]}, INVALID, "flows", "at most 32"),
        ({"flows": [tuple_(client_port=p) for p in range(10_000)]}, INVALID, "flows", "10000 five-tuples"),
        ({"flows": [tuple_("198.18.1.12")]}, FOREIGN, "flows.client_address", "127.0.0.1"),
        ({"flows": [tuple_("8.8.8.8")]}, FOREIGN, "flows.client_address", "127.0.0.1"),
        ({"flows": [tuple_("nonsense")]}, INVALID, "flows.client_address", "IPv4 or IPv6"),
        ({"flows": [tuple_(server="")]}, INVALID, "flows.server_address", "IPv4 or IPv6"),
        ({"flows": [flow_pb2.FiveTuple(protocol=1)]}, INVALID, "flows.protocol", "6 (TCP) or 17 (UDP)"),
    ],
)
async def test_wrong_report_is_rejected(
    station: RunningStation,
    controller: Controller,
    fields: dict[str, Any],
    reason: int,
    field: str,
    words: str,
) -> None:
    """The rejection names field and allowed values; stream, session and controller are not disturbed."""
    async with station.agent() as agent:
        await agent.ask(report(sequence_number=1))
        changed: dict[str, Any] = {"sequence_number": 2, **fields}
        wrong = report(**changed)
        rejection = (await agent.ask(wrong)).rejection
        assert (rejection.reason, rejection.field) == (reason, field)
        assert words in rejection.message
        assert len(rejection.message) <= 500
        assert len(rejection.session_id) <= 64
        assert (await agent.ask(report(sequence_number=2))).WhichOneof("message") == "acknowledgement"
    assert [(await controller.next()).buffer_length_ms for _ in range(2)] == [50_000, 50_000]
    assert controller.assessments.empty()


async def test_a_megabyte_ends_only_its_own_stream(station: RunningStation) -> None:
    """A message beyond the limit ends its stream with RESOURCE_EXHAUSTED; other agents go on."""
    async with station.agent() as other, station.agent() as agent:
        await other.ask(report("other"))
        with pytest.raises(grpc.RpcError) as caught:
            await agent.ask(report("x" * 1_000_000))
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await other.ask(report("other", 2))).WhichOneof("message") == "acknowledgement"


async def test_bytes_that_are_no_message(station: RunningStation) -> None:
    """Bytes that cannot be parsed, and a request without a report, are rejected; the stream goes on."""
    credentials = grpc.ssl_channel_credentials(station.ca)
    async with grpc.aio.secure_channel(station.ready.reports, credentials) as channel:
        call = cast(Any, channel).stream_stream(
            "/steerline.report.v1.ReportService/Report",
            response_deserializer=report_pb2.ReportResponse.FromString,
        )()
        for data in (b"\xff\xff\xff\xff", b""):
            await call.write(data)
            rejection = (await call.read()).rejection
            assert (rejection.reason, rejection.field) == (INVALID, "report")
        await call.write(report_pb2.ReportRequest(report=report()).SerializeToString())
        assert (await call.read()).WhichOneof("message") == "acknowledgement"
        call.cancel()


async def test_too_many_reports(controller: Controller, start_station: Any) -> None:
    """An address that floods is told so and read slowly; when it calms down its reports count again."""
    station: RunningStation = await start_station(
        steering_port=controller.port, max_reports_per_s_per_address=20
    )
    async with station.agent() as agent:
        answers: list[str] = []
        for number in range(1, 61):
            answer = await agent.ask(report(sequence_number=number, flows=[]))
            if answer.WhichOneof("message") == "rejection":
                assert answer.rejection.reason == report_pb2.REJECTION_REASON_TOO_MANY
                assert "20 reports of 4096 bytes a second" in answer.rejection.message
            answers.append(str(answer.WhichOneof("message")))
        assert answers[:40] == ["acknowledgement"] * 40
        assert "rejection" in answers[40:]


async def test_too_many_sessions(controller: Controller, start_station: Any) -> None:
    """One session more than an address may have is refused; the others go on."""
    station: RunningStation = await start_station(steering_port=controller.port, max_sessions_per_address=2)
    async with station.agent() as agent:
        for name in ("a", "b"):
            assert (await agent.ask(report(name, flows=[]))).WhichOneof("message") == "acknowledgement"
        refused = (await agent.ask(report("c", flows=[]))).rejection
        assert (refused.reason, refused.field) == (report_pb2.REJECTION_REASON_TOO_MANY, "session_id")
        assert (await agent.ask(report("a", 2, flows=[]))).WhichOneof("message") == "acknowledgement"


async def test_plain_text_against_tls(station: RunningStation) -> None:
    """An agent without TLS gets nowhere, and the others do not notice."""
    station_in_plain = RunningStation(station.ready, None, station.task, station.stop)
    async with station.agent() as good, station_in_plain.agent() as agent:
        with pytest.raises(grpc.RpcError) as caught:
            await agent.ask(report())
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        await good.ask(report("good"))
