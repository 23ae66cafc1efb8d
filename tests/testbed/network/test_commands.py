"""The command line: what it refuses, with which words, before anything is made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from steerline_testbed.__main__ import main
from steerline_testbed.network.cli import COMMANDS
from steerline_testbed.network.tools import PACKAGE_OF

COMMAND = [sys.executable, "-m", "steerline_testbed"]


def call(
    *words: str, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """Exit status, output and error output of the command."""
    done = subprocess.run(
        [*before, *COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr


def namespaces_of(run_id: str) -> list[str]:
    """Namespaces that carry the run's id."""
    netns = Path("/run/netns")
    return (
        [path.name for path in netns.iterdir() if path.name.startswith(f"sl-{run_id}-")]
        if netns.is_dir()
        else []
    )


def here(*words: str) -> int:
    """Exit status of the command, in this process."""
    with mock.patch.object(sys, "argv", ["steerline-testbed", *words]), pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    """--help names every command, shows examples and says that root is wanted."""
    assert here("--help") == 0
    shown = capsys.readouterr().out
    for word in ("up", "down", "list", "clean", "assert", "run", "root", "examples"):
        assert word in shown
    for command in COMMANDS:
        assert here(command, "--help") == 0
        assert command in capsys.readouterr().out


@pytest.mark.network
def test_without_root_the_error_names_root(run_id: str) -> None:
    """An ordinary user is told that root is wanted, and how to get it."""
    for words in (["up", run_id], ["down", run_id]):
        status, _, said = call(*words, before=("unshare", "--user"))
        assert status == 1
        assert "root" in said
        assert "sudo" in said
        assert "Traceback" not in said


@pytest.mark.network
def test_a_missing_tool_is_named_with_its_package(run_id: str, tmp_path: Path) -> None:
    """Without ovs-vsctl on the path the error names it and the package that brings it."""
    for tool in [*PACKAGE_OF, "sh", "true"]:
        found = shutil.which(tool)
        assert found is not None
        if tool != "ovs-vsctl":
            (tmp_path / tool).symlink_to(found)
    status, _, said = call("up", run_id, env={"PATH": str(tmp_path)})
    assert status == 1
    assert "ovs-vsctl (package openvswitch-switch)" in said
    assert "apt-get install openvswitch-switch" in said
    assert namespaces_of(run_id) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["up", "Bad.Id"], ["'Bad.Id'", "allowed"]),
        (["up", "x", "--lines", "0"], ["lines is 0", "1 to 32"]),
        (["up", "x", "--line-mbps", "0.01"], ["capacity_bps", "10000", "100000"]),
        (["up", "x", "--station-side", "C"], ["station_side", "'C'"]),
        (["up", "x", "--topology", "/nonexistent.toml"], ["/nonexistent.toml"]),
        (["assert", "--loss", "2"], ["loss", "0.5"]),
        (["assert", "--side-by-side", "99"], ["--side-by-side is 99", "1 to 16"]),
        (["cut", "nosuchrun", "line1"], ["nosuchrun"]),
        (["down", "nosuchrun"], ["nosuchrun"]),
    ],
)
def test_wrong_words_are_named(
    words: list[str], named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option or name is an error with the value and what is allowed."""
    assert here(*words) == 1
    said = capsys.readouterr().err
    assert said.startswith("steerline-testbed: ")
    for part in named:
        assert part in said


@pytest.mark.network
def test_up_and_down(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A detached network is listed, explains how to look around, can be cut, and `down` removes all of it."""
    status, shown, said = call("up", run_id, "--bare", "--no-check", "--lines", "2", "--detach")
    try:
        assert status == 0, said
        assert f"ip netns exec sl-{run_id}-viewer1" in shown
        assert "dump-flows" in shown
        assert here("list") == 0
        assert f"{run_id} " in capsys.readouterr().out
        assert here("cut", run_id, "line2", "--how", "silent") == 0
        assert here("restore", run_id, "line2") == 0
        assert here("cut", run_id, "line3") == 1
        assert "line1, line2" in capsys.readouterr().err
        second, _, complaint = call("up", run_id, "--bare", "--detach")
        assert second == 1
        assert "already there" in complaint
    finally:
        assert call("down", run_id)[0] == 0
    assert namespaces_of(run_id) == []
    assert not Path("/run/steerline", run_id).exists()


@pytest.mark.network
def test_networks_measured_side_by_side_pass(run_id: str) -> None:
    """Two networks of two lines pass their own assertion while both are loaded."""
    status, shown, said = call("assert", "--lines", "2", "--side-by-side", "2", "--run-id", run_id)
    assert status == 0, shown + said
    assert shown.count("passed") == 2
    assert namespaces_of(run_id) == []
