"""The journal tells live runs from dead ones, and what they own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from steerline_testbed.network import RunExistsError, TestbedError, registry


def me() -> registry.ProcessId:
    """This process."""
    found = registry.ProcessId.of(os.getpid())
    assert found is not None
    return found


def test_a_pid_given_to_somebody_else_is_not_the_process() -> None:
    """A process is known by pid and start time, so that a reused pid is nobody's child."""
    assert me().alive
    assert not registry.ProcessId(os.getpid(), me().start_ticks + 1).alive


def test_a_zombie_is_not_alive() -> None:
    """A child that has ended but was not waited for counts as gone."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert registry.ProcessId.of(child.pid) is None
    child.wait()


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    """A journal whose writer was killed in the middle of a line still tells all the lines before."""
    whole = [{"runner": [1, 2]}, {"namespace": "sl-x-core"}, {"child": [3, 4]}, {"ready": True}]
    text = "".join(json.dumps(entry) + "\n" for entry in whole) + '{"child": [5,'
    (tmp_path / registry.JOURNAL).write_text(text)
    record = registry.read(tmp_path)
    assert record.runner == registry.ProcessId(1, 2)
    assert record.namespaces == ["sl-x-core"]
    assert record.children == [registry.ProcessId(3, 4)]
    assert record.facts == {"ready": True}


def test_a_dead_runs_directory_is_cleaned_and_said(tmp_path: Path) -> None:
    """Cleaning removes the dead run's directory, says so, and leaves the live run's alone."""
    for name, ticks in (("dead", me().start_ticks + 1), ("live", me().start_ticks)):
        (tmp_path / name).mkdir()
        (tmp_path / name / registry.JOURNAL).write_text(json.dumps({"runner": [os.getpid(), ticks]}) + "\n")
    said: list[str] = []
    with registry.locked(tmp_path):
        assert registry.clean_orphans(tmp_path, said.append) == ["dead"]
    assert "dead" in said[0]
    assert not (tmp_path / "dead").exists()
    assert (tmp_path / "live").exists()


@pytest.fixture
def short_path() -> Generator[Path]:
    """A folder whose name leaves room for those of sockets, wherever pytest's own are."""
    with tempfile.TemporaryDirectory(prefix="sl-", dir="/tmp") as name:
        yield Path(name)


def test_a_folder_that_is_no_runs_is_never_removed(short_path: Path) -> None:
    """A directory without a journal is somebody else's: not cleaned, and its name not given to a run."""
    (short_path / "mine").mkdir()
    (short_path / "mine" / "notes").write_text("dear diary")
    with registry.locked(short_path):
        assert registry.clean_orphans(short_path, print) == []
        with pytest.raises(RunExistsError, match="mine"):
            registry.claim(short_path, "mine")
    assert (short_path / "mine" / "notes").exists()


def test_ending_an_unknown_run_names_the_known(tmp_path: Path) -> None:
    """`down` of a run that is not there says which are."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / registry.JOURNAL).write_text(json.dumps({"runner": [1, 1]}) + "\n")
    with pytest.raises(TestbedError, match="other"):
        registry.end_run(tmp_path, "nobody")


def test_a_long_directory_is_refused(tmp_path: Path) -> None:
    """Sockets in a run's directory need short names; a longer directory is refused with the limit."""
    with pytest.raises(TestbedError, match="allowed: 70"):
        registry.claim(tmp_path / ("x" * 60), "run")
