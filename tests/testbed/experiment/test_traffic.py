"""Cross traffic over loopback against a small server."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from steerline_testbed.experiment import traffic
from steerline_testbed.experiment.clock import monotonic_s


@asynccontextmanager
async def serving(status: str = "200 OK", endless: bool = True) -> AsyncGenerator[tuple[int, list[str]]]:
    """A server of endless bytes (or that hangs up after 100 kB) and of objects by their name."""
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                asked.append(path)
                writer.write(f"HTTP/1.1 {status}\r\nContent-Type: x\r\n\r\n".encode())
                if path == "/big.bin" and endless:
                    while True:
                        writer.write(bytes(20_000))
                        await writer.drain()
                        await asyncio.sleep(0.01)
                if path == "/big.bin":
                    writer.write(bytes(100_000))
                    return
                writer.write(bytes(int(path.removeprefix("/object-").removesuffix("k.bin")) * 1024))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()


def options(port: int, **changes: Any) -> argparse.Namespace:
    """Options of a generator against the server on `port`."""
    values: dict[str, Any] = {
        "server": "127.0.0.1", "port": port, "count": 3, "interval": 0.05, "first_at": monotonic_s(),
        "think": 0.01, "seed": 1,
    }  # fmt: skip
    return argparse.Namespace(**{**values, **changes})


async def recorded(work: Any, chosen: argparse.Namespace, for_s: float) -> list[dict[str, Any]]:
    """What the generator wrote in `for_s` seconds."""
    out = io.StringIO()
    stop = asyncio.Event()
    task = asyncio.create_task(work(chosen, traffic.Recorder(out), stop))
    await asyncio.sleep(for_s)
    stop.set()
    await asyncio.wait_for(task, 5)
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def test_each_download_is_one_connection_and_its_bytes_only_rise() -> None:
    """Three downloads are three requests, each with its own port, recorded each second."""
    async with serving() as (port, asked):
        rows = await recorded(traffic.run_downloads, options(port), 2.3)
    assert asked == ["/big.bin"] * 3
    starts = [row for row in rows if row["kind"] == "start"]
    assert [row["download"] for row in starts] == [1, 2, 3]
    assert len({row["local_port"] for row in starts}) == 3
    counts = [row["bytes"] for row in rows if row["kind"] == "bytes"]
    assert len(counts) >= 2
    assert all(0 < counts[0][which] < counts[1][which] for which in ("1", "2", "3"))


async def test_downloads_start_one_after_the_other() -> None:
    """The interval lies between two starts."""
    async with serving() as (port, _):
        rows = await recorded(traffic.run_downloads, options(port, interval=0.3), 1.2)
    times = [row["time_s"] for row in rows if row["kind"] == "start"]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 2 and all(0.2 < gap < 0.6 for gap in gaps)


async def test_a_download_that_the_server_ends_says_so() -> None:
    """Its bytes so far and the reason are recorded; the others go on."""
    async with serving(endless=False) as (port, _):
        rows = await recorded(traffic.run_downloads, options(port, count=1), 1.2)
    (end,) = [row for row in rows if row["kind"] == "end"]
    assert end["bytes"] == 100_000 and end["reason"] == "the server closed the connection"


async def test_a_refusal_is_an_end_and_not_a_rate() -> None:
    """An answer other than 200 is recorded with what the server said."""
    async with serving(status="404 Not Found") as (port, _):
        rows = await recorded(traffic.run_downloads, options(port, count=1), 1.2)
    (end,) = [row for row in rows if row["kind"] == "end"]
    assert "404" in end["reason"]


async def test_nobody_there_is_an_end_too() -> None:
    """A port without a server ends the download with the reason."""
    async with serving() as (port, _):
        pass
    rows = await recorded(traffic.run_downloads, options(port, count=1), 1.2)
    (end,) = [row for row in rows if row["kind"] == "end"]
    assert "refused" in end["reason"].lower()


async def test_the_browsing_customer_reads_the_same_pages_for_the_same_seed() -> None:
    """Objects and their order come from the seed; pages are recorded with size and duration."""
    histories: list[list[str]] = []
    for _ in range(2):
        async with serving() as (port, asked):
            stop = asyncio.Event()
            out = io.StringIO()
            task = asyncio.create_task(
                traffic.run_browsing(options(port, seed=7), traffic.Recorder(out), stop)
            )
            while len(asked) < 20:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            histories.append(asked[:20])
    assert histories[0] == histories[1]
    page = json.loads(out.getvalue().splitlines()[0])
    assert page["kind"] == "page" and page["bytes"] > 0 and page["duration_s"] >= 0


async def test_the_program_ends_in_order_on_sigterm(tmp_path: Path) -> None:
    """Exit status 0, and a record whose every line is whole."""
    record = tmp_path / "downloads.jsonl"
    async with serving() as (port, _):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "steerline_testbed.experiment.traffic", "downloads",
            "--server", "127.0.0.1", "--port", str(port), "--count", "2", "--interval", "0",
            "--record", str(record),
        )  # fmt: skip
        while not record.exists() or b'"bytes"' not in record.read_bytes():
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 5) == 0
    assert all(json.loads(line) for line in record.read_text().splitlines())


def test_a_full_disk_has_its_own_exit_status() -> None:
    """The runner can tell a full disk from a crash, and the message names the file."""
    assert os.path.exists("/dev/full")  # noqa: PTH110 - a device, not a file of ours
    done = subprocess.run(
        [sys.executable, "-m", "steerline_testbed.experiment.traffic", "downloads", "--server", "127.0.0.1",
         "--port", "9", "--count", "1", "--record", "/dev/full"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )  # fmt: skip
    assert done.returncode == traffic.DISK_FULL_STATUS
    assert done.stderr.strip() == "no space left for /dev/full"
