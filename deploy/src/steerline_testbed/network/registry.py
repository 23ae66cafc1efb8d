"""Who owns what: a journal in each run's directory, written before a thing is made.

One JSON object per line: the runner (pid and start time), each namespace, each child (pid and start time). A
pid alone may have been given to somebody else since; with its start time it is one process for ever. So a
later start can tell dead runs from live ones, and remove exactly what the dead ones left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steerline_testbed.network import namespaces
from steerline_testbed.network.errors import BuildError, MissingRequirementError, RunExistsError, TestbedError

JOURNAL = "registry.jsonl"
_LONGEST_PATH = 70
DEFAULT_BASE = Path("/run/steerline")


@dataclass(frozen=True)
class ProcessId:
    """One process for ever: its pid and the kernel tick at which it started."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The living process of that pid; None when there is none (a zombie counts as none)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessId.of(self.pid) == self


@dataclass
class Record:
    """What a run's journal says."""

    run_id: str
    directory: Path
    runner: ProcessId | None = None
    namespaces: list[str] = field(default_factory=list[str])
    children: list[ProcessId] = field(default_factory=list[ProcessId])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def alive(self) -> bool:
        """Whether the runner still runs."""
        return self.runner is not None and self.runner.alive


class Journal:
    """Appends to the journal of one's own run."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / JOURNAL).open("ab", buffering=0)

    def write(self, **entry: Any) -> None:
        """One line, in the file before this returns to the caller who then acts; BuildError when full."""
        try:
            line = json.dumps(entry).encode() + b"\n"
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise BuildError(f"journal {self._file.name} cannot be written: {error.strerror}") from None

    def child(self, pid: int) -> None:
        """A child that has just been started."""
        if identity := ProcessId.of(pid):
            self.write(child=[identity.pid, identity.start_ticks])

    def close(self) -> None:
        """No more entries."""
        self._file.close()


def read(directory: Path) -> Record:
    """A run's journal; a torn last line, from a kill in the middle of a write, is left out."""
    record = Record(directory.name, directory)
    try:
        lines = (directory / JOURNAL).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return record
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "runner" in entry:
            record.runner = ProcessId(*entry["runner"])
        elif "namespace" in entry:
            record.namespaces.append(entry["namespace"])
        elif "child" in entry:
            record.children.append(ProcessId(*entry["child"]))
        else:
            record.facts.update(entry)
    return record


def runs(base: Path) -> list[Record]:
    """Every run that has a directory under `base`, dead or alive, by id."""
    if not base.is_dir():
        return []
    return [read(path) for path in sorted(base.iterdir()) if path.is_dir() and (path / JOURNAL).exists()]


@contextlib.contextmanager
def locked(base: Path) -> Generator[None]:
    """Alone among the runners of this machine while directories are claimed or orphans removed."""
    try:
        base.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(base / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MissingRequirementError(f"directory of the runs {base} cannot be written: {error}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def claim(base: Path, run_id: str) -> Path:
    """The run's own new directory (call it while `locked`); RunExistsError when the id is in use."""
    directory = base / run_id
    if len(str(directory)) > _LONGEST_PATH:
        raise TestbedError(
            f"run directory {directory} has {len(str(directory))} characters; "
            f"allowed: {_LONGEST_PATH}, so that the names of sockets in it fit"
        )
    if directory.exists():
        record = read(directory)
        if record.alive and record.runner:
            raise RunExistsError(
                f"run {run_id!r} is already there (runner pid {record.runner.pid}, {directory}); "
                f"choose another id, or end it: steerline-testbed down {run_id}"
            )
        raise RunExistsError(
            f"{directory} is there and is not a run's directory; choose another id or remove it"
        )
    try:
        directory.mkdir(mode=0o755)
    except OSError as error:
        raise MissingRequirementError(f"run directory {directory} cannot be made: {error}") from None
    return directory


def clean_orphans(base: Path, say: Callable[[str], None]) -> list[str]:
    """Remove what dead runs left behind (call it while `locked`), say so; their ids.

    Live runs stay untouched.
    """
    cleaned: list[str] = []
    for record in runs(base):
        if record.alive:
            continue
        if record.runner is None and (record.namespaces or record.children):
            say(f"{record.directory}: no runner stands in its journal; left as it is")
            continue
        try:
            ended = remove(record)
        except TestbedError as error:
            say(f"the dead run {record.run_id} could not be cleaned: {error}")
            continue
        cleaned.append(record.run_id)
        say(
            f"cleaned the dead run {record.run_id}: {len(record.namespaces)} namespaces, "
            f"{ended} processes, {record.directory}"
        )
    return cleaned


def remove(record: Record) -> int:
    """Remove exactly what the journal names; how many processes had to be ended."""
    ended = 0
    for child in record.children:
        if child.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
                ended += 1
    ended += namespaces.kill_inhabitants(record.namespaces)
    for namespace in record.namespaces:
        namespaces.remove(namespace)
    shutil.rmtree(record.directory, ignore_errors=True)
    return ended


def end_run(base: Path, run_id: str, timeout_s: float = 30) -> None:
    """Ask a run's runner to end and wait until it has gone; TestbedError when there is no such run."""
    directory = base / run_id
    record = read(directory)
    if record.runner is None:
        known = ", ".join(run.run_id for run in runs(base)) or "none"
        raise TestbedError(f"no run is called {run_id!r} under {base}; there: {known}")
    if record.alive:
        os.kill(record.runner.pid, signal.SIGTERM)
    deadline_s = time.monotonic() + timeout_s
    while record.alive:
        if time.monotonic() > deadline_s:
            raise TestbedError(f"run {run_id} (pid {record.runner.pid}) has not ended within {timeout_s:g} s")
        time.sleep(0.05)
    with locked(base):
        if directory.exists():
            remove(read(directory))
