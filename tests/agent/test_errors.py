"""What is wrong is named, with an exit code of its own; what is not essential does not stop the film."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import trustme

from .agent import BINARY
from .conftest import Start
from .station import Station
from .web import Film, Web


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/nothing.mpd", "answered 404"),
        ("/page.html", "not an MPD"),
        ("/live.mpd", 'MPD@type is "dynamic"'),
        ("/single.mpd", "SegmentBase"),
        ("/binary.mpd", "not UTF-8"),
        ("/huge.mpd", "longer than 16777216 bytes"),
        ("/loop", "more than 5 redirections"),
    ],
)
async def test_a_film_that_cannot_be_played_is_named(
    web: Web, start: Start, path: str, expected: str
) -> None:
    """The error names the URL and what is wrong with it; exit code 3."""
    single = '<MPD mediaPresentationDuration="PT9S"><Period><AdaptationSet contentType="video">'
    single += (
        '<Representation id="v" bandwidth="1"><SegmentBase/></Representation></AdaptationSet></Period></MPD>'
    )
    web.files = {
        "/page.html": b"<html><body>hello</body></html>",
        "/live.mpd": web.film.mpd().replace("static", "dynamic").encode(),
        "/single.mpd": single.encode(),
        "/binary.mpd": b"\xff\xfe\x00",
        "/huge.mpd": b" " * (16 * 1024 * 1024 + 1),
    }
    web.status = {"/loop" + "?moved" * times: 302 for times in range(8)}
    url = web.url.replace("/film.mpd", path)
    agent = await start(url)
    ended = await agent.ended()
    assert ended.code == 3
    assert url in ended.err
    assert expected in ended.err


async def test_a_server_that_is_not_there_is_named(web: Web, start: Start) -> None:
    """Nobody listens: the address is named; exit code 3; with many players it is said once."""
    await web.die()
    agent = await start(web.url, "--players", "5")
    ended = await agent.ended()
    assert ended.code == 3
    assert ended.err.count(f"no connection to 127.0.0.1:{web.port}") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--goal", "1"], "allowed are 4 to 600 seconds"),
        (["--players", "0"], "1..=1000"),
        (["--duration", "nan"], "allowed are 1 to 604800 seconds"),
        (["--session-prefix", "x" * 1_000_0], "allowed are 1 to 56"),
        (["--station", "http://198.18.3.1:50051"], "only with TLS"),
        (["--bind", "here"], "invalid IP address"),
        (["--colour"], "unexpected argument"),
    ],
)
async def test_a_wrong_option_is_refused_with_what_is_allowed(
    web: Web, start: Start, arguments: list[str], expected: str
) -> None:
    """Exit code 2, and nothing is asked of the server."""
    agent = await start(web.url, *arguments)
    ended = await agent.ended()
    assert ended.code == 2
    assert expected in ended.err
    assert web.connections == []


async def test_a_wrong_authority_file_is_named(web: Web, start: Start, tmp_path: Path) -> None:
    """A file that is missing, or holds no certificate, stops the start with exit code 5."""
    (tmp_path / "empty.pem").write_text("nothing\n")
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (tmp_path / "broken.pem").write_text(broken)
    for name in ("none.pem", "empty.pem", "broken.pem"):
        path = str(tmp_path / name)
        agent = await start(web.url, "--station", "https://127.0.0.1:1", "--ca", path)
        ended = await agent.ended()
        assert ended.code == 5, name
        assert path in ended.err
    assert web.connections == []


async def test_a_station_of_another_authority_gets_no_report(
    web: Web, station: Station, start: Start, tmp_path: Path
) -> None:
    """The wrong certificate is refused and named; the film plays to its end all the same."""
    web.film = Film(duration_s=2)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    agent = await start(web.url, "--station", station.url, "--ca", str(tmp_path / "other.pem"))
    ended = await agent.ended()
    assert ended.code == 0
    assert station.url in ended.err
    assert "certificate" in ended.err
    assert station.reports == []
    assert agent.lines("end")[0]["player_state"] == "ENDED"


async def test_the_name_in_the_certificate_is_checked(web: Web, start: Start, tmp_path: Path) -> None:
    """A certificate for another name is refused, unless --server-name says that it is the one."""
    web.film = Film(duration_s=2)
    station = Station(tmp_path, "station.steerline.test")
    await station.start()
    try:
        refused = await (await start(web.url, *station.arguments)).ended()
        assert refused.code == 0
        assert "certificate" in refused.err
        assert station.reports == []
        named = await start(web.url, *station.arguments, "--server-name", "station.steerline.test")
        assert (await named.ended()).code == 0
        assert station.reports
    finally:
        await station.die()


async def test_a_station_that_never_answers_holds_nothing_up(web: Web, start: Start, tmp_path: Path) -> None:
    """A station that accepts connections and says nothing: the film plays, the end waits 2 s at most."""
    web.film = Film(duration_s=2)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "any.pem"))
    agent = await start(web.url, "--station", f"https://127.0.0.1:{port}", "--ca", str(tmp_path / "any.pem"))
    ended = await agent.ended(9)
    silent.close()
    assert ended.code == 0
    assert agent.lines("end")[0]["stall_count"] == 0


async def test_a_full_disk_costs_the_record_and_not_the_film(web: Web, start: Start, tmp_path: Path) -> None:
    """A record that cannot be written on is named once; the film plays on; exit code 6 tells of it."""
    web.film = Film(duration_s=2)
    (tmp_path / "record-0.jsonl").symlink_to("/dev/full")
    agent = await start(web.url)
    ended = await agent.ended()
    assert ended.code == 6
    assert ended.err.count("No space left on device") == 1
    assert "ENDED" in ended.out


async def test_a_record_that_cannot_be_made_stops_the_start(web: Web, start: Start, tmp_path: Path) -> None:
    """The path is named; exit code 5."""
    (tmp_path / "record-0.jsonl").mkdir()
    ended = await (await start(web.url)).ended()
    assert ended.code == 5
    assert "record-0.jsonl" in ended.err


async def test_a_closed_pipe_does_not_stop_the_film(web: Web) -> None:
    """Nobody reads what it prints: it plays on, and ends well."""
    web.film = Film(duration_s=2)
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        str(BINARY), "play", web.url, stdout=writing, stderr=writing
    )
    os.close(writing)
    assert await asyncio.wait_for(process.wait(), 15) == 0
    assert any(path == "/v480/0002.m4s" for _, path in web.requests)
