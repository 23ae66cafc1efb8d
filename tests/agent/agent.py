"""The built agent as a child process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "target" / "release" / "steerline-agent"

T = TypeVar("T")
Line = dict[str, Any]


def build() -> Path:
    """The release binary; made where it is missing."""
    if not BINARY.exists():
        subprocess.run(["cargo", "build", "--release", "-p", "steerline-agent"], cwd=ROOT, check=True)
    return BINARY


@dataclass(frozen=True)
class Ended:
    """How the agent ended."""

    code: int
    out: str
    err: str


class Agent:
    """One running agent with its record."""

    def __init__(self, process: asyncio.subprocess.Process, record: Path) -> None:
        self.process = process
        self._record = record

    def lines(self, kind: str | None = None) -> list[Line]:
        """The record so far; a line that is being written is left out."""
        if not self._record.exists():
            return []
        whole = [text for text in self._record.read_text().splitlines(keepends=True) if text.endswith("\n")]
        lines: list[Line] = [json.loads(text) for text in whole]
        return [line for line in lines if kind in (None, line["kind"])]

    async def ended(self, timeout_s: float = 30.0) -> Ended:
        """Waits for the end."""
        out, err = await asyncio.wait_for(self.process.communicate(), timeout_s)
        assert self.process.returncode is not None
        return Ended(self.process.returncode, out.decode(), err.decode())

    async def stop(self) -> Ended:
        """Sends SIGTERM and waits."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended(5)

    def kill(self) -> None:
        """For the end of a test that failed."""
        if self.process.returncode is None:
            self.process.kill()


async def start(record: Path, *arguments: str) -> Agent:
    """Starts `steerline-agent play` with a record."""
    process = await asyncio.create_subprocess_exec(
        str(BINARY),
        "play",
        *arguments,
        "--record",
        str(record),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return Agent(process, record)


async def until(what: Callable[[], T], timeout_s: float = 10.0) -> T:
    """Waits until `what` is true, and returns it."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not (result := what()):
        assert loop.time() < end, f"not within {timeout_s} s"
        await asyncio.sleep(0.02)
    return result
