"""A browser's habits with connections, and that the player knows each of its sockets."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from steerline.report.v1 import report_pb2

from .agent import until
from .conftest import Start
from .station import Station
from .web import Film, Web


async def test_connections_are_kept_and_used_again(web: Web, start: Start) -> None:
    """Video and sound come at the same time over two connections, which serve the whole film."""
    web.film = Film(duration_s=4)
    agent = await start(web.url)
    assert (await agent.ended()).code == 0
    assert len(web.connections) == 2
    assert {path.split("/")[1] for _, path in web.requests} == {"film.mpd", "v480", "snd"}
    segments = agent.lines("segment")
    assert sum(not line["reused"] for line in segments) == 1  # the other connection brought the manifest


async def test_a_connection_the_server_closes_is_replaced_and_reported_at_once(
    web: Web, station: Station, start: Start
) -> None:
    """Each new socket is in a report with the cause FLOWS_CHANGED, and closed ones are not in it any more."""
    web.requests_per_connection = 6
    agent = await start(web.url, *station.arguments, "--goal", "5", "--duration", "5")
    ended = await agent.ended()
    assert ended.code == 0
    assert agent.lines("failure") == []
    assert len(web.connections) >= 4
    changes = [report for report in station.reports if report.cause == report_pb2.REPORT_CAUSE_FLOWS_CHANGED]
    reported = {flow.client_port for report in changes for flow in report.flows}
    assert reported == {port for _, port in web.connections}
    assert all(len(report.flows) <= 3 for report in station.reports)
    opened = [line for line in agent.lines("flows") if line["opened"]]
    for line in opened[2:]:
        port = line["opened"]["client_port"]
        first = next(report for report in changes if port in {flow.client_port for flow in report.flows})
        assert abs(first.timestamp_ms / 1000 - line["time_s"]) < 0.1


async def test_an_idle_connection_the_server_closes_disturbs_nothing(web: Web, start: Start) -> None:
    """Connections closed while they are idle are noticed, and the next segment opens new ones."""
    web.idle_timeout_s = 0.4
    agent = await start(web.url, "--goal", "4", "--duration", "5")
    assert (await agent.ended()).code == 0
    assert agent.lines("failure") == []
    assert any(line["closed"] for line in agent.lines("flows"))
    assert agent.lines("end")[0]["stall_count"] == 0


async def test_a_get_that_met_a_closing_connection_is_sent_once_more(web: Web, start: Start) -> None:
    """A server that closes without a word when the next request is on its way costs no failure."""
    web.requests_per_connection = 4
    web.closes_silently = True
    agent = await start(web.url, "--goal", "5", "--duration", "5")
    assert (await agent.ended()).code == 0
    assert agent.lines("failure") == []
    assert agent.lines("end")[0]["stall_count"] == 0
    assert len(web.connections) > 4


async def test_an_answer_that_breaks_off_is_asked_for_again(web: Web, start: Start) -> None:
    """Half a segment is no segment: it is recorded as a failure and fetched once more."""
    web.film = Film(duration_s=4)
    web.break_off = {"/v480/0003.m4s"}
    agent = await start(web.url)
    assert (await agent.ended()).code == 0
    [failure] = agent.lines("failure")
    assert (failure["track"], failure["index"]) == ("video", 2)
    assert "broke off" in failure["error"]
    assert sum(path == "/v480/0003.m4s" for _, path in web.requests) == 2


async def test_a_server_that_dies_and_returns_is_waited_for(web: Web, start: Start) -> None:
    """While the server is away the player stalls; when it is back the film goes on."""
    web.film = Film(duration_s=8)
    agent = await start(web.url, "--goal", "4")
    await until(lambda: any(line["to"] == "PLAYING" for line in agent.lines("state")))
    await web.die()
    await until(lambda: any(line["to"] == "REBUFFERING" for line in agent.lines("state")), 15)
    await web.start()
    ended = await agent.ended()
    assert ended.code == 0
    assert agent.lines("end")[0]["stall_count"] == 1


async def test_a_server_that_stays_away_ends_playback(web: Web, station: Station, start: Start) -> None:
    """After --give-up-after the player says what failed, reports FATAL_ERROR, and exits with 4."""
    agent = await start(web.url, *station.arguments, "--goal", "4", "--give-up-after", "2")
    await until(lambda: any(line["to"] == "PLAYING" for line in agent.lines("state")))
    await web.die()
    ended = await agent.ended()
    assert ended.code == 4
    assert f"127.0.0.1:{web.port}" in ended.out
    assert agent.lines("end")[0]["player_state"] == "FATAL_ERROR"
    assert station.reports[-1].player_state == 8


@pytest.mark.parametrize("status", [404, 503])
async def test_a_segment_that_is_missing_ends_playback(web: Web, start: Start, status: int) -> None:
    """A segment the server refuses ends playback with the status in the error: 404 soon, 503 in the end."""
    web.status = {"/v480/0003.m4s": status}
    agent = await start(web.url, "--give-up-after", "2")
    ended = await agent.ended()
    assert ended.code == 4
    assert f"answered {status}" in ended.out


async def test_it_plays_over_ipv6(start: Start, station: Station) -> None:
    """The flows of an IPv6 server are reported as such."""
    web = Web(Film(duration_s=2))
    await web.start("::1")
    try:
        agent = await start(web.url, *station.arguments, "--bind", "::1")
        assert (await agent.ended()).code == 0
    finally:
        await web.die()
    assert {flow.server_address for report in station.reports for flow in report.flows} == {"::1"}


async def test_it_plays_over_tls(start: Start, tmp_path: Path) -> None:
    """https works with an authority of one's own, and not without."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    authority.cert_pem.write_to_path(str(tmp_path / "web.pem"))
    web = Web(Film(duration_s=2))
    await web.start(tls=context)
    try:
        agent = await start(web.url, "--media-ca", str(tmp_path / "web.pem"))
        assert (await agent.ended()).code == 0
        refused = await (await start(web.url)).ended()
    finally:
        await web.die()
    assert refused.code == 3
    assert "UnknownIssuer" in refused.err
