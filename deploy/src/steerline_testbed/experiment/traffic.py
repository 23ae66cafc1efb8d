"""Cross traffic of one customer: long downloads, or a person who browses.

    python -m steerline_testbed.experiment.traffic downloads --server 198.19.0.2 --count 20 ...

Runs in the customer's namespace. One process carries all downloads, one TCP connection each, and
discards what arrives in the kernel (MSG_TRUNC), so that measuring costs little of the machine that
is measured. Records are JSON lines; times are CLOCK_MONOTONIC in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TextIO

from steerline_testbed.experiment.clock import monotonic_s

DISCARD_BYTES = 4 * 2**20
DISK_FULL_STATUS = 28


class Recorder:
    """Writes one JSON object per line, and each line at once."""

    def __init__(self, out: TextIO, now: Callable[[], float] = monotonic_s) -> None:
        self._out = out
        self._now = now

    def write(self, kind: str, **fields: object) -> None:
        """Adds a line with the time of now. Raises OSError when the disk is full."""
        self._out.write(json.dumps({"time_s": round(self._now(), 6), "kind": kind, **fields}) + "\n")
        self._out.flush()


class Download:
    """One endless download over one TCP connection.

    Reads as soon as something arrives, as browsers and players do. To be woken for larger pieces only
    (SO_RCVLOWAT) costs less, but changes the shares: measured on full lines, a connection that is read at
    once gets 1.3 times what each of its neighbours gets that are read every 32 KiB or 2 MiB.
    """

    def __init__(self, number: int, server: str, port: int, path: str, recorder: Recorder) -> None:
        self.number = number
        self.bytes = 0
        self.alive = False
        self._server, self._port, self._path = server, port, path
        self._recorder = recorder
        self._socket: socket.socket | None = None
        self._discard = bytearray(DISCARD_BYTES)
        self._head: bytes | None = b""

    async def start(self) -> None:
        """Connects, asks, and reads on in the background."""
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in self._server else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        self._socket = sock
        try:
            await loop.sock_connect(sock, (self._server, self._port))
            host = f"[{self._server}]" if family == socket.AF_INET6 else self._server
            await loop.sock_sendall(sock, f"GET {self._path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        except OSError as error:
            # asyncio puts a sentence of its own where the system's words would be.
            self._end(f"cannot connect: {os.strerror(error.errno) if error.errno else error}")
            return
        self.alive = True
        self._recorder.write("start", download=self.number, local_port=sock.getsockname()[1])
        loop.add_reader(sock, self.drain)

    def drain(self) -> None:
        """Takes everything that has arrived."""
        while self.alive and self._socket is not None:
            try:
                if self._head is not None:
                    self._read_head(self._socket)
                    continue
                got = self._socket.recv_into(self._discard, DISCARD_BYTES, socket.MSG_TRUNC)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._end(error.strerror or "connection failed")
                return
            if got == 0:
                self._end("the server closed the connection")
                return
            self.bytes += got
            if got < DISCARD_BYTES:
                return

    def _read_head(self, sock: socket.socket) -> None:
        assert self._head is not None
        data = sock.recv(4096)
        if not data:
            self._end("the server closed the connection before it answered")
            return
        self._head += data
        head, found, body = self._head.partition(b"\r\n\r\n")
        if not found:
            return
        status = head.split(b" ", 2)[1:2]
        if status != [b"200"]:
            self._end(f"the server answered {head.splitlines()[0].decode(errors='replace')}")
            return
        self._head = None
        self.bytes = len(body)

    def _end(self, reason: str) -> None:
        self.alive = False
        self._recorder.write("end", download=self.number, bytes=self.bytes, reason=reason)
        self.close()

    def close(self) -> None:
        """Gives the connection back."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self.alive = False


async def run_downloads(options: argparse.Namespace, recorder: Recorder, stop: asyncio.Event) -> None:
    """Starts `count` downloads, one each `interval` seconds from `first_at`, and records them each second."""
    downloads: list[Download] = []

    async def start_all() -> None:
        for number in range(1, options.count + 1):
            await _sleep_until(options.first_at + (number - 1) * options.interval)
            download = Download(number, options.server, options.port, "/big.bin", recorder)
            downloads.append(download)
            await download.start()

    starter = asyncio.create_task(start_all())
    waiting = asyncio.create_task(stop.wait())
    tick_at = options.first_at
    try:
        while not stop.is_set():
            tick_at += 1.0
            await asyncio.wait({waiting}, timeout=max(0.0, tick_at - monotonic_s()))
            for download in downloads:
                download.drain()
            recorder.write("bytes", bytes={str(one.number): one.bytes for one in downloads})
            if starter.done() and starter.exception() is not None:
                raise starter.exception() or AssertionError
    finally:
        starter.cancel()
        waiting.cancel()
        for download in downloads:
            download.close()


async def run_browsing(options: argparse.Namespace, recorder: Recorder, stop: asyncio.Event) -> None:
    """A person reads pages: each of some objects over one short connection, then a think time.

    Objects per page 4 to 16, sizes drawn from the server's, think times exponential with a mean of
    `think` seconds; all from the seed.
    """
    chance = Random(options.seed)
    await _sleep_until(options.first_at)
    while not stop.is_set():
        sizes = chance.choices((4, 16, 64, 256), weights=(40, 35, 20, 5), k=chance.randint(4, 16))
        think_s = chance.expovariate(1.0 / options.think)
        began = monotonic_s()
        try:
            got = await asyncio.wait_for(_page(options.server, options.port, sizes), timeout=60.0)
            recorder.write("page", bytes=got, duration_s=round(monotonic_s() - began, 3), objects=len(sizes))
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            recorder.write("page-failed", reason=str(error) or type(error).__name__)
        try:
            await asyncio.wait_for(stop.wait(), timeout=think_s)
        except TimeoutError:
            continue


async def _page(server: str, port: int, sizes_kib: Sequence[int]) -> int:
    reader, writer = await asyncio.open_connection(server, port)
    total = 0
    try:
        for kib in sizes_kib:
            writer.write(f"GET /object-{kib}k.bin HTTP/1.1\r\nHost: {server}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.splitlines()[0]:
                raise OSError(f"the server answered {head.splitlines()[0].decode(errors='replace')}")
            await reader.readexactly(kib * 1024)
            total += kib * 1024
    finally:
        writer.close()
    return total


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(0.0, at_s - monotonic_s()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="traffic", description="cross traffic of one customer")
    parser.add_argument("kind", choices=("downloads", "browse"))
    parser.add_argument("--server", required=True, help="address of the download server")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--first-at", type=float, default=0.0, help="CLOCK_MONOTONIC of the first, in s")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two starts")
    parser.add_argument("--think", type=float, default=4.0, help="mean think time in s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, required=True)
    return parser


async def _run(options: argparse.Namespace, recorder: Recorder) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = run_downloads if options.kind == "downloads" else run_browsing
    options.first_at = options.first_at or monotonic_s()
    task = asyncio.create_task(work(options, recorder, stop))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if options.kind == "browse" and not task.done():
        task.cancel()  # it may be in the middle of a page or of a thought
    await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled() and (failure := task.exception()) is not None:
        raise failure


def main() -> None:
    """Runs until SIGTERM or SIGINT. Exit status 28 when the record's disk is full."""
    options = _parser().parse_args()
    try:
        with options.record.open("a", encoding="utf-8") as out:
            asyncio.run(_run(options, Recorder(out)))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"no space left for {options.record}", file=sys.stderr)
        raise SystemExit(DISK_FULL_STATUS) from None


if __name__ == "__main__":
    main()
