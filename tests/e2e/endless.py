"""A film that never ends, over TCP or as datagrams (what a switch sees of QUIC); both ends of it.

    endless.py serve PORT [PORT ...]          every connection, and every datagram's sender, is sent to
    endless.py watch tcp|udp ADDRESS PORT [COUNT]

Datagrams come at 3 Mbit/s for as long as the viewer goes on asking; TCP as fast as it gets.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import cast

CHUNK = bytes(64 * 1024)
DATAGRAM = bytes(1200)
DATAGRAM_EVERY_S = len(DATAGRAM) * 8 / 3e6
# Several at once: a clock that ticks too coarsely must not slow the film.
BURST = 4


class Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._tasks: dict[object, asyncio.Task[None]] = {}

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        if addr not in self._tasks:
            self._tasks[addr] = asyncio.create_task(self._send(addr))

    async def _send(self, addr: tuple[str | int, int]) -> None:
        while True:
            for _ in range(BURST):
                self._transport.sendto(DATAGRAM, addr)
            await asyncio.sleep(BURST * DATAGRAM_EVERY_S)


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del reader
    try:
        while True:
            writer.write(CHUNK)
            await writer.drain()
    except ConnectionError:
        writer.close()


async def serve(ports: list[int]) -> None:
    loop = asyncio.get_running_loop()
    for port in ports:
        await asyncio.start_server(_stream, "0.0.0.0", port)
        await loop.create_datagram_endpoint(Datagrams, local_addr=("0.0.0.0", port))
    await asyncio.Event().wait()


def watch_datagrams(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as viewer:
        viewer.connect((address, port))
        while True:
            viewer.send(b"more")
            for _ in range(100):
                viewer.recv(2048)


async def watch_streams(address: str, port: int, count: int) -> None:
    async def one() -> None:
        reader, _ = await asyncio.open_connection(address, port)
        while await reader.read(1 << 20):
            pass

    await asyncio.gather(*(one() for _ in range(count)))


def main(command: str, *arguments: str) -> None:
    if command == "serve":
        asyncio.run(serve([int(port) for port in arguments]))
    protocol, address, port = arguments[:3]
    if protocol == "udp":
        watch_datagrams(address, int(port))
    asyncio.run(watch_streams(address, int(port), int(arguments[3]) if len(arguments) > 3 else 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
