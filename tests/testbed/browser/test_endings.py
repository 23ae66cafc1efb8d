"""However a run with a browser ends, nothing of the browser is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.network
COMMAND = [sys.executable, "-m", "steerline_testbed", "run", "--player", "chromium", "--plain"]


def start(out: Path, run_id: str) -> subprocess.Popen[str]:
    """A run of a minute without other traffic."""
    words = ["--flows", "0", "--duration", "60", "--out", str(out), "--run-id", run_id]
    return subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def of_run(run_id: str) -> dict[int, str]:
    """Processes whose command names this run's folder: browser, driver, worker, host, services."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if f"/run/steerline/{run_id}/" in text:
            found[int(entry.name)] = text
    return found


def until(what: Callable[[], object], timeout_s: float) -> None:
    end_s = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < end_s, f"not within {timeout_s:g} s"
        time.sleep(0.1)


def reports(out: Path) -> bool:
    """The browser's film has been reported: everything runs."""
    path = out / "raw" / "reports.jsonl"
    return path.exists() and '"PLAYING"' in path.read_text()


def test_a_browser_that_dies_ends_the_run_and_is_named(tmp_path: Path) -> None:
    """Killed in the middle of the film: the run says which player ended, and leaves no process."""
    run_id = f"tb{os.getpid()}a"
    run = start(tmp_path / "out", run_id)
    try:
        until(lambda: reports(tmp_path / "out"), 60)
        (browser,) = [
            pid
            for pid, text in of_run(run_id).items()
            if "--remote-debugging-pipe" in text and "--type=" not in text
        ]
        os.kill(browser, signal.SIGKILL)
        text, _ = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 1
    assert "player 1 (chromium) ended in the middle of the run" in text
    assert "chromium has ended by itself, or was killed; its log is player1-browser.log" in text
    assert (tmp_path / "out" / "logs" / "player1-browser.log").exists()
    assert of_run(run_id) == {}


def test_a_runner_that_is_killed_takes_the_browser_along(tmp_path: Path) -> None:
    """kill -9 of the runner: the kernel ends worker, driver, browser and host within two seconds."""
    run_id = f"tb{os.getpid()}b"
    run = start(tmp_path / "out", run_id)
    try:
        until(lambda: reports(tmp_path / "out"), 60)
        assert [text for text in of_run(run_id).values() if "chromedriver" in text or "/profile" in text]
    finally:
        run.kill()
        run.communicate()
    until(lambda: not of_run(run_id), 2)
    # What is left of the namespaces goes with the next start, or with this.
    subprocess.run([sys.executable, "-m", "steerline_testbed", "clean"], check=True, capture_output=True)
    assert not Path(f"/run/steerline/{run_id}").exists()
