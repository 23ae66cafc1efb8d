"""The command as a supervisor uses it: real processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from steerline_appstation.errors import StartError

from .support import eventually, http_get

LOOPBACK = '[listen]\nreports = "127.0.0.1:0"\nrest = "127.0.0.1:0"\n'


@contextlib.asynccontextmanager
async def command(*arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "steerline_appstation",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def outcome(*arguments: str) -> tuple[int | None, str, str]:
    async with asyncio.timeout(20), command(*arguments) as process:
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


async def ready(process: asyncio.subprocess.Process) -> dict[str, str]:
    """The fields of the ready line."""
    assert process.stdout is not None
    async with asyncio.timeout(20):
        line = (await process.stdout.readline()).decode()
    return dict(field.split("=", 1) for field in line.split())


def settings(tmp_path: Path, text: str = "") -> str:
    path = tmp_path / "appstation.toml"
    path.write_text(text + LOOPBACK if "[listen]" not in text else text)
    return str(path)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_clean_stop(tmp_path: Path, number: signal.Signals) -> None:
    """One ready line; a signal ends it within 2 s with exit code 0, its Redis with it."""
    async with command("run", "--settings", settings(tmp_path)) as process:
        fields = await ready(process)
        assert fields["event"] == "ready"
        assert (await http_get(fields["rest"], "/health"))[0] == 200
        assert lives(int(fields["redis_pid"]))
        began_s = time.monotonic()
        process.send_signal(number)
        assert await process.wait() == 0
        assert time.monotonic() - began_s < 2.0
        assert not lives(int(fields["redis_pid"]))


async def test_clean_stop_in_trouble(tmp_path: Path) -> None:
    """Also with a Redis that hangs and a reader that waits for it, the end comes within 2 s."""
    async with command("run", "--settings", settings(tmp_path)) as process:
        fields = await ready(process)
        os.kill(int(fields["redis_pid"]), signal.SIGSTOP)
        host, _, port = fields["rest"].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /decisions HTTP/1.1\r\nHost: test\r\n\r\n")
        await asyncio.sleep(0.2)
        began_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        assert time.monotonic() - began_s < 2.0
        assert not lives(int(fields["redis_pid"]))
        writer.close()


async def test_redis_dies_with_its_parent(tmp_path: Path) -> None:
    """Even a station that is killed leaves no Redis behind; the next one goes on with its history."""
    path = settings(tmp_path)
    async with command("run", "--settings", path) as process:
        fields = await ready(process)
        process.send_signal(signal.SIGKILL)
        await process.wait()

        async def gone() -> bool:
            return not lives(int(fields["redis_pid"]))

        await eventually(gone)
    async with command("run", "--settings", path) as process:
        assert (await ready(process))["event"] == "ready"


async def test_two_stations_in_one_directory(start_station: Any) -> None:
    """The second is refused by name; the first goes on."""
    first = await start_station(steering_port=9)
    with pytest.raises(StartError, match="is in use by another station"):
        await start_station(steering_port=9)
    assert (await first.get("/health"))[0] == 200


@pytest.mark.parametrize("name", ["reports", "rest"])
async def test_port_in_use(start_station: Any, tmp_path: Path, name: str) -> None:
    """A port that is taken is named, reports or rest, and nothing is left behind."""
    first = await start_station(steering_port=9)
    taken = getattr(first.ready, name)
    listen = {"reports": "127.0.0.1:0", "rest": "127.0.0.1:0", name: taken}
    with pytest.raises(StartError, match=f"listen.{name} {taken}.*allowed: a free port"):
        await start_station(steering_port=9, listen=listen, redis={"directory": str(tmp_path / "other")})
    assert (await first.get("/health"))[0] == 200
    await start_station(steering_port=9, redis={"directory": str(tmp_path / "other")})


@pytest.mark.parametrize("verb", [["check"], ["run"]])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("low_s = -1\n", "low_s is -1; allowed: 0.5 to 600"),
        ('[listen]\nreports = "0.0.0.0:50051"\n', "listen.reports is 0.0.0.0:50051, not loopback"),
        ('[tls]\ncertificate = "no.pem"\nkey = "no.pem"\n', "tls.certificate"),
    ],
)
async def test_wrong_settings_stop_the_start(tmp_path: Path, verb: list[str], text: str, words: str) -> None:
    """Exit code 2, one line that names the thing, no trace; `check` and `run` agree."""
    code, out, err = await outcome(*verb, "--settings", settings(tmp_path, text))
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


async def test_certificate_that_is_none(tmp_path: Path) -> None:
    """Files that are not PEM, or do not belong together, are named before anything listens."""
    (tmp_path / "bad.pem").write_text("hello")
    text = '[tls]\ncertificate = "bad.pem"\nkey = "bad.pem"\n'
    code, _, err = await outcome("run", "--settings", settings(tmp_path, text))
    assert code == 2
    assert "bad.pem" in err
    assert len(err.splitlines()) == 1
    assert "PEM certificate" in err


async def test_good_settings(tmp_path: Path) -> None:
    """`check` says so, starts nothing, and exits 0."""
    code, out, err = await outcome("check", "--settings", settings(tmp_path))
    assert (code, err) == (0, "")
    assert "good" in out
    assert not (tmp_path / "redis").exists()


async def test_help_teaches() -> None:
    """--help shows a settings file and the exit codes."""
    code, out, _ = await outcome("--help")
    assert code == 0
    for words in ("customer_networks", "[redis]", "Exit codes", "schema"):
        assert words in out


async def test_the_unexpected_ends_the_process(tmp_path: Path) -> None:
    """A bug is not logged and lived with: the process ends with its trace, and the supervisor starts it."""
    program = tmp_path / "broken.py"
    program.write_text(
        "import sys\n"
        "from steerline_appstation.core.station import Station\n"
        "def broken(*_): raise RuntimeError('nobody expected this')\n"
        "Station.expire = broken\n"
        "from steerline_appstation.__main__ import main\n"
        "main()\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        "run",
        "--settings",
        settings(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert process.returncode == 1
    assert b"nobody expected this" in err
    pid = dict(f.split("=", 1) for f in out.decode().split())["redis_pid"]
    assert not lives(int(pid))


async def test_an_unexpected_error_in_a_stream_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_station: Any
) -> None:
    """Also where gRPC would hide it from everybody."""
    from steerline_appstation.shell.desk import Desk

    from .support import report

    def broken(*_: object) -> bool:
        raise RuntimeError("nobody expected this either")

    station = await start_station(steering_port=9, redis={"directory": str(tmp_path / "r")})
    monkeypatch.setattr(Desk, "receive", broken)
    async with station.agent() as agent:
        await agent.send(report())
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.timeout(10):
                await station.task
    assert caught.group_contains(RuntimeError, match="nobody expected this either")
