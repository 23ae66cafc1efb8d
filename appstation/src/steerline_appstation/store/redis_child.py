"""A private redis-server: a child in a directory of the run, without a TCP port."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import IO, Final

import structlog

from steerline_appstation.errors import StartError

# The kernel's limit of a unix socket's path is 107 bytes.
MAX_SOCKET_PATH: Final = 107
START_WITHIN_S: Final = 10.0
STOP_WITHIN_S: Final = 0.3
LEAST_WAIT_S: Final = 0.2
MOST_WAIT_S: Final = 5.0

# key of redis.conf: value. Appending each second survives a kill; nothing forks a snapshot.
_OPTIONS: Final[dict[str, str]] = {
    "port": "0",
    "unixsocketperm": "600",
    "daemonize": "no",
    "save": "",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "no-appendfsync-on-rewrite": "yes",
    # Full: forgets the sessions that have been quiet for longest, as a whole.
    "maxmemory-policy": "volatile-ttl",
    "logfile": "redis.log",
    "loglevel": "notice",
    "databases": "1",
}


class PrivateRedis:
    """Starts the child, starts it again when it dies, and takes it along when this process dies."""

    def __init__(self, directory: Path, max_memory_mb: int) -> None:
        self._directory = directory
        self._max_memory_mb = max_memory_mb
        self._process: asyncio.subprocess.Process | None = None
        self._log = structlog.get_logger()
        self.socket = directory / "redis.sock"

    @property
    def url(self) -> str:
        """Where it listens, for RedisStore."""
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int | None:
        """The child's process id, while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The directory is owned and the child runs. Raises StartError."""
        if len(str(self.socket).encode()) > MAX_SOCKET_PATH:
            raise StartError(
                f"redis.directory {self._directory} is too long for a unix socket; "
                f"allowed: {MAX_SOCKET_PATH - len('/redis.sock')} bytes"
            )
        with _lock(self._directory):
            self.socket.unlink(missing_ok=True)
            await self._start()
            try:
                if not await self._answers():
                    raise StartError(
                        f"redis-server did not start within {START_WITHIN_S:g} s; "
                        f"see {self._directory / 'redis.log'}"
                    )
                yield
            finally:
                await self._stop()

    async def keep(self) -> None:
        """Starts the child again whenever it dies. Runs until cancelled."""
        wait_s = LEAST_WAIT_S
        loop = asyncio.get_running_loop()
        while True:
            assert self._process is not None
            began_s = loop.time()
            code = await self._process.wait()
            if loop.time() - began_s > 2 * MOST_WAIT_S:
                wait_s = LEAST_WAIT_S
            self._log.warning("redis-ended", exit_code=code, restart_in_s=wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(MOST_WAIT_S, 2 * wait_s)
            await self._start()

    async def _start(self) -> None:
        arguments = [
            "--dir", str(self._directory),
            "--unixsocket", str(self.socket),
            "--maxmemory", f"{self._max_memory_mb}mb",
        ]  # fmt: skip
        for key, value in _OPTIONS.items():
            arguments += [f"--{key}", value]
        # setpriv, not a preexec function: Python must not run between fork and exec beside threads.
        self._process = await asyncio.create_subprocess_exec(
            _tool("setpriv", "util-linux"),
            "--pdeathsig",
            "KILL",
            _tool("redis-server", "redis-server"),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # A Ctrl-C at the terminal is for the station alone.
        )

    async def _answers(self) -> bool:
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_WITHIN_S):
                while self._process.returncode is None:
                    try:
                        reader, writer = await asyncio.open_unix_connection(str(self.socket))
                    except OSError:
                        await asyncio.sleep(0.02)
                        continue
                    writer.write(b"PING\r\n")
                    answer = await reader.readline()
                    writer.close()
                    if answer.startswith(b"+PONG"):
                        return True
                    await asyncio.sleep(0.02)
        return False

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _lock(directory: Path) -> IO[str]:
    """Two servers in one directory would spoil each other's files."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (directory / "lock").open("w")
    except OSError as error:
        raise StartError(f"redis.directory {directory}: {error.strerror}; it must be writable") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StartError(
            f"redis.directory {directory} is in use by another station; give each its own"
        ) from None
    return file


def _tool(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise StartError(
            f"{name} is not installed (package {package}); or give redis.url of a server that runs"
        )
    return path
