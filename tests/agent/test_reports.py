"""What the station hears: once a second and at each event, over TLS, and after an absence too."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import trustme

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2

from .agent import until
from .conftest import Start
from .station import Station, acknowledge
from .web import Film, Web


async def test_reports_say_what_the_player_does(web: Web, station: Station, start: Start) -> None:
    """Reports tell state, buffer, rates, what is left and the sockets, once a second and at events."""
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
    """The film plays on; when the station is back, the missed reports come first, as history."""
    agent = await start(web.url, *station.arguments, "--session-prefix", "viewer")
    await until(lambda: len(station.reports) > 3)
    await station.die()
    last = station.reports[-1].sequence_number
    stalled = agent.lines()[-1]["stall_count"]
    await until(lambda: len(agent.lines("sample")) > 10)
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


async def test_the_last_sixty_reports_are_kept(web: Web, station: Station, start: Start) -> None:
    """While the station is away for long, a session keeps its newest 60 reports and no more."""
    await station.die()
    web.requests_per_connection = 2  # a report for each connection that comes or goes
    agent = await start(web.url, *station.arguments)
    await until(lambda: len(agent.lines("flows")) > 80, 20)
    await until(lambda: agent.lines()[-1]["position_s"] > 4)  # they are no news any more
    await station.start()
    await until(lambda: any(not is_replayed(report) for report in station.reports), 15)
    assert 50 <= sum(is_replayed(report) for report in station.reports) <= 60
    ended = await agent.stop()
    assert " 0 lost" not in ended.out


def is_replayed(report: report_pb2.PlaybackReport) -> bool:
    """History, not state."""
    return report.cause == report_pb2.REPORT_CAUSE_REPLAYED


async def test_attempts_back_off(web: Web, start: Start, tmp_path: Path) -> None:
    """A station that closes every connection is tried less and less often."""
    attempts: list[float] = []
    loop = asyncio.get_running_loop()

    def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.append(loop.time())
        writer.transport.abort()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "any.pem"))
    agent = await start(web.url, "--station", f"https://127.0.0.1:{port}", "--ca", str(tmp_path / "any.pem"))
    await until(lambda: len(attempts) >= 6, 20)
    await agent.stop()
    server.close()
    gaps = [later - earlier for earlier, later in itertools.pairwise(attempts[:6])]
    for number, gap in enumerate(gaps):
        nominal = 0.2 * 2**number
        assert max(0.2, nominal / 2) - 0.02 <= gap <= nominal + 0.5


async def test_a_rejection_is_told_and_the_film_plays_on(web: Web, station: Station, start: Start) -> None:
    """What the station rejects stands on standard error and in the record, with the field and the reason."""

    def reject(report: report_pb2.PlaybackReport) -> list[report_pb2.ReportResponse]:
        if report.cause != report_pb2.REPORT_CAUSE_PERIODIC:
            return acknowledge(report)
        response = report_pb2.ReportResponse()
        response.rejection.session_id = report.session_id
        response.rejection.sequence_number = report.sequence_number
        response.rejection.reason = report_pb2.REJECTION_REASON_FOREIGN
        response.rejection.field = "flows[0].client_address"
        response.rejection.message = "198.18.9.9 is another customer's"
        return [response]

    web.film = Film(duration_s=4)
    station.answer = reject
    agent = await start(web.url, *station.arguments)
    ended = await agent.ended()
    assert ended.code == 0
    assert "FOREIGN: flows[0].client_address: 198.18.9.9 is another customer's" in ended.err
    assert {line["reason"] for line in agent.lines("rejection")} == {"FOREIGN"}


async def test_what_the_station_says_is_recorded_and_advice_obeyed(
    web: Web, station: Station, start: Start
) -> None:
    """Decisions and advice stand in the record; --obey-advice caps the rate at the advice."""

    def advise(report: report_pb2.PlaybackReport) -> list[report_pb2.ReportResponse]:
        advice, decision, assessment = (report_pb2.ReportResponse() for _ in range(3))
        advice.advice.session_id = report.session_id
        advice.advice.sustainable_bps = 1_000_000
        advice.advice.reason = "two sessions share the line"
        decision.decision.session_id = report.session_id
        decision.decision.kind = flow_pb2.DECISION_KIND_STEER
        decision.decision.to_line = "line2"
        decision.decision.reason = "below the lower threshold"
        assessment.assessment.session_id = report.session_id
        assessment.assessment.critical = True
        return [*acknowledge(report), advice, decision, assessment]

    web.film = Film(duration_s=30)
    station.answer = advise
    agent = await start(web.url, *station.arguments, "--obey-advice", "--goal", "6", "--duration", "5")
    assert (await agent.ended()).code == 0
    assert agent.lines("advice")[0]["sustainable_bps"] == 1_000_000
    decision = agent.lines("decision")[0]
    assert (decision["decision"], decision["to_line"]) == ("STEER", "line2")
    assert agent.lines("sample")[-1]["critical"] is True
    assert agent.lines("sample")[-1]["fetch_height"] == 360
    switches = [
        report for report in station.reports if report.cause == report_pb2.REPORT_CAUSE_QUALITY_SWITCH
    ]
    assert switches[0].encoded_bitrate_kbps == 878


async def test_a_stall_is_reported_at_once(web: Web, station: Station, start: Start) -> None:
    """REBUFFERING comes as a change of state with the starvation flag, once; then stall count and time."""
    agent = await start(web.url, *station.arguments, "--goal", "4", "--rule", "off")
    await until(lambda: any(line["to"] == "PLAYING" for line in agent.lines("state")))
    web.rate_bps = 100_000
    await until(lambda: any(line["to"] == "REBUFFERING" for line in agent.lines("state")), 15)
    await asyncio.sleep(1.5)
    await agent.stop()
    [stall] = [report for report in station.reports if report.starved]
    assert stall.cause == report_pb2.REPORT_CAUSE_STATE_CHANGE
    assert stall.player_state == flow_pb2.PLAYER_STATE_REBUFFERING
    assert (stall.buffer_length_ms, stall.stall_count) == (0, 1)
    assert station.reports[-1].player_state == flow_pb2.PLAYER_STATE_QUIT
    assert station.reports[-1].stall_duration_ms > 1400


async def test_many_players_share_one_stream(web: Web, station: Station, start: Start) -> None:
    """200 sessions report over one stream, each with its own sockets, and nothing is lost."""
    web.film = Film(duration_s=6, video_bps={360: 40_000}, audio_bps=8_000)
    agent = await start(web.url, *station.arguments, "--players", "200", "--session-prefix", "s", "--quiet")
    ended = await agent.ended(60)
    assert ended.code == 0, ended.err
    assert "0 rejected, 0 lost, 1 connection(s)" in ended.out
    assert station.streams == 1
    owners: dict[int, set[str]] = {}
    for report in station.reports:
        for flow in report.flows:
            owners.setdefault(flow.client_port, set()).add(report.session_id)
    assert all(len(sessions) == 1 for sessions in owners.values())
    assert len({report.session_id for report in station.reports}) == 200


async def test_a_restarted_agent_is_heard_under_its_old_name(
    web: Web, station: Station, start: Start
) -> None:
    """Sequence numbers of a session's name rise over restarts, so that no station takes them for old ones."""
    for _ in range(2):
        agent = await start(web.url, *station.arguments, "--session-prefix", "same", "--duration", "2")
        assert (await agent.ended()).code == 0
    numbers = [report.sequence_number for report in station.of("same-1")]
    assert numbers == sorted(set(numbers))


async def test_no_report_tells_what_is_watched(web: Web, station: Station, start: Start) -> None:
    """Neither a path nor a name of a file leaves the machine in a report."""
    web.film = Film(duration_s=2)
    agent = await start(web.url, *station.arguments)
    assert (await agent.ended()).code == 0
    told = b"".join(report.SerializeToString() for report in station.reports)
    assert not any(word in told for word in (b"film", b"mpd", b"m4s", b"http:", b"v480"))
