"""What the station hears: once a second and at each event, over TLS, and after an absence too."""

from __future__ import annotations

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2

from .agent import until
from .conftest import Start
from .station import Station
from .web import Film, Web


async def test_reports_say_what_the_player_does(web: Web, station: Station, start: Start) -> None:
    """A session's reports tell state, buffer, rates, what is left and the sockets, once a second and at events."""
    web.film = Film(duration_s=6)
    agent = await start(web.url, *station.arguments, "--session-prefix", "viewer")
    ended = await agent.ended()
    assert ended.code == 0, ended.err
    reports = station.of("viewer-1")
    states = [report.player_state for report in reports]
    assert states[0] == flow_pb2.PLAYER_STATE_STARTING
    assert states[-1] == flow_pb2.PLAYER_STATE_ENDED
    assert flow_pb2.PLAYER_STATE_PLAYING in states
    periodic = [report for report in reports if report.cause == report_pb2.REPORT_CAUSE_PERIODIC]
    assert 5 <= len(periodic) <= 7
    playing = periodic[3]
    assert (playing.encoded_bitrate_kbps, playing.top_bitrate_kbps) == (2728, 2728)
    assert playing.target_buffer_ms == 55_000
    assert 0 < playing.buffer_length_ms < 6_000
    assert abs(playing.remaining_media_ms - playing.buffer_length_ms) <= 1  # a short film: all is loaded
    assert playing.measured_throughput_kbps > 2728
    assert playing.player_name == "headless"
    ports = {flow.client_port for flow in playing.flows}
    assert ports == {port for _, port in web.connections}
    assert all(flow.server_port == web.port and flow.protocol == 6 for flow in playing.flows)
    numbers = [report.sequence_number for report in reports]
    assert numbers == sorted(set(numbers))
    stamps = [report.timestamp_ms for report in reports]
    assert stamps == sorted(stamps)
    assert "0 lost" in ended.out


async def test_a_station_that_dies_is_found_again_and_told_what_it_missed(
    web: Web, station: Station, start: Start
) -> None:
    """The film plays on; after the station's return the missed reports come first, as history, then the present."""
    agent = await start(web.url, *station.arguments, "--session-prefix", "viewer")
    await until(lambda: len(station.reports) > 3)
    await station.die()
    last = station.reports[-1].sequence_number
    stalled = agent.lines()[-1]["stall_count"]
    await until(lambda: len(agent.lines("sample")) > 14)
    station.reports.clear()
    await station.start()
    await until(lambda: len(station.reports) > 6, 15)
    causes = [report.cause for report in station.reports]
    replayed = causes.count(report_pb2.REPORT_CAUSE_REPLAYED)
    assert replayed >= 2
    assert all(cause == report_pb2.REPORT_CAUSE_REPLAYED for cause in causes[:replayed])
    assert causes[-1] != report_pb2.REPORT_CAUSE_REPLAYED
    numbers = [report.sequence_number for report in station.reports]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] <= last + 1
    ended = await agent.stop()
    assert ended.code == 0
    assert "no reports reach the station" in ended.err
    assert "again" in ended.err
    assert agent.lines()[-1]["stall_count"] == stalled == 0
