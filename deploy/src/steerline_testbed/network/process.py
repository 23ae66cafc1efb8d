"""Children of a run: each in its own session, each ending with the runner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steerline_testbed.network.errors import BuildError, ServiceError
from steerline_testbed.network.registry import Journal
from steerline_testbed.network.tools import search_path


class Process:
    """A child in a namespace. It leads its own session, so that its whole group can be ended."""

    def __init__(self, popen: subprocess.Popen[bytes], node: str, argv: Sequence[str], log: Path) -> None:
        self._popen = popen
        self.node = node
        self.argv = tuple(argv)
        self.log = log

    @property
    def pid(self) -> int:
        """Its pid, which is also its process group."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._popen.poll() is None

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit code once it has ended; TimeoutError after `timeout_s`."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.argv[0]} in {self.node} still runs after {timeout_s:g} s") from None

    def signal(self, number: int) -> None:
        """Send a signal to its whole group; nothing happens when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self, timeout_s: float = 2) -> int:
        """End it: asked first, then made to."""
        stop_all([self], timeout_s)
        return self._popen.wait()

    def tail(self, lines: int = 10) -> str:
        """The end of its log, for error messages."""
        try:
            return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def require_running(self) -> None:
        """ServiceError with the end of its log when it has ended."""
        if not self.running:
            raise ServiceError(
                f"{Path(self.argv[0]).name} in {self.node} ended with code {self.returncode}; "
                f"its log {self.log} ends:\n{self.tail()}"
            )


def stop_all(processes: Iterable[Process], timeout_s: float = 2) -> None:
    """End several at once: SIGTERM to each group, SIGKILL to those that are left after `timeout_s`."""
    left = [process for process in processes if process.running]
    for process in left:
        process.signal(signal.SIGTERM)
    deadline_s = time.monotonic() + timeout_s
    while (left := [process for process in left if process.running]) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    for process in left:
        process.signal(signal.SIGKILL)
    for process in left:
        process.wait()


class Spawner:
    """Starts children that die with the runner.

    The kernel sends the parent's death signal when the *thread* that made the child ends, so one thread,
    which lives as long as the run, makes them all: callers may spawn from any thread.
    """

    def __init__(self, directory: Path, journal: Journal) -> None:
        self._directory = directory
        self._journal = journal
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        self.processes: list[Process] = []

    def spawn(
        self, node: str, namespace: str, argv: Sequence[str], log: str, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start `argv` in the namespace; output goes to the end of the run's file `log`."""
        return self._thread.submit(self._spawn, node, namespace, argv, log, env).result()

    def _spawn(
        self, node: str, namespace: str, argv: Sequence[str], log: str, env: Mapping[str, str] | None
    ) -> Process:
        path = self._directory / log
        command = ["setpriv", "--pdeathsig", "KILL", "--", "ip", "netns", "exec", namespace, *argv]
        try:
            with path.open("ab") as output:
                popen = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PATH": search_path(), **(env or {})},
                    start_new_session=True,
                )
        except OSError as error:
            raise BuildError(f"start {argv[0]} in {node}: {error}") from None
        try:
            self._journal.child(popen.pid)
        except BuildError:
            os.killpg(popen.pid, signal.SIGKILL)  # nobody would know whose it is
            popen.wait()
            raise
        process = Process(popen, node, argv, path)
        self.processes.append(process)
        return process

    def close(self) -> None:
        """End all children and the thread."""
        stop_all(self.processes)
        self._thread.shutdown()
