"""A wrong setting stops the start, and says which key, what it was and what is allowed."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from steerline_controller.shell.settings import load
from steerline_controller.shell.settings_errors import SettingsError
from steerline_controller.shell.settings_schema import schema_text

SCHEMA = Path(__file__).parents[3] / "contract/schema/controller-settings.schema.json"
GOOD = """
strategy = "buffer-threshold"
mode = "reactive"
best_effort = "round-robin"
damping_s = 10
seed = 1
idle_timeout_s = 30
statistics_interval_s = 1.0
record = "events.jsonl"
[listen]
openflow = "127.0.0.1:6653"
steering = "127.0.0.1:50052"
[[site]]
name = "home"
[site.A]
datapath_id = "00000000000000a1"
edge_ports = ["a-viewer1"]
[site.B]
datapath_id = "00000000000000b1"
edge_ports = ["b-server"]
[[site.line]]
name = "line1"
port_A = "a-line1"
port_B = "b-line1"
capacity_bps = 10_000_000
[[site.line]]
name = "line2"
port_A = "a-line2"
port_B = "b-line2"
capacity_bps = 10_000_000
[[site.host]]
address = "198.18.1.11"
side = "A"
port = "a-viewer1"
"""


def write(directory: Path, text: str) -> Path:
    """A settings file."""
    path = directory / "controller.toml"
    path.write_text(text)
    return path


def test_good_settings(tmp_path: Path) -> None:
    """The documented file is read, and a relative record stands beside it."""
    settings = load(write(tmp_path, GOOD))
    assert settings.record == tmp_path / "events.jsonl"
    assert settings.sites[0].lines[1].port("B") == "b-line2"
    assert settings.sites[0].side("A").number == 0xA1


WRONG = [
    ("damping_s", "dampin_s", "dampin_s is not a key; allowed here: strategy, mode"),
    ('strategy = "buffer-threshold"', 'strategy = "magic"', "strategy is 'magic'; allowed: 'single', "),
    ('mode = "reactive"', 'mode = "proactive"', "mode is 'proactive'; allowed: 'reactive' or"),
    ("damping_s = 10", "damping_s = -1", "damping_s is -1; allowed: 0 to 3600"),
    ("damping_s = 10", "damping_s = nan", "damping_s is nan; allowed: 0 to 3600"),
    ("damping_s = 10", 'damping_s = "soon"', "damping_s is 'soon'; allowed: number"),
    ("idle_timeout_s = 30", "idle_timeout_s = 0", "idle_timeout_s is 0; allowed: 1 to 65535"),
    ("statistics_interval_s = 1.0", "statistics_interval_s = 0", "statistics_interval_s is 0; allowed: 0.1"),
    ("127.0.0.1:6653", "localhost", "listen.openflow is 'localhost'; allowed: address:port"),
    ("127.0.0.1:6653", "127.0.0.1:66536", "listen.openflow is '127.0.0.1:66536'; allowed: address:port"),
    ("127.0.0.1:6653", "0.0.0.0:6653", "listen.openflow is '0.0.0.0:6653'; allowed: a loopback address"),
    ("127.0.0.1:50052", "198.18.3.1:50052", "or any with [tls] certificate and key"),
    ("[listen]", '[tls]\ncertificate = "no.pem"\nkey = "no.key"\n[listen]', "no.pem': No such file"),
    ("00000000000000a1", "a1", "site[1].A.datapath_id is 'a1'; allowed: text of the form ^[0-9a-f]{16}$"),
    ("00000000000000b1", "00000000000000a1", "datapath_id '00000000000000a1' stands twice"),
    ('name = "line2"', 'name = "line1"', "line name 'line1' stands twice"),
    ('port_A = "a-line2"', 'port_A = "a-line1"', "port of switch A 'a-line1' stands twice"),
    ('port_B = "b-line2"', 'port_B = "b-server"', "port of switch B 'b-server' stands twice"),
    ('port_A = "a-line2"', "", "site[1].line[2].port_A is missing"),
    ('port_A = "a-line2"', 'port_A = "a-port-with-a-long-name"', "at most 15 characters"),
    ("capacity_bps = 10_000_000\n[[site.line]]", "capacity_bps = 5\n[[site.line]]",
     "site[1].line[1].capacity_bps is 5; allowed: 1000 to 400000000000"),
    ("198.18.1.11", "198.18.1.300", "address is '198.18.1.300'; allowed: an IPv4 or IPv6 address"),
    ("198.18.1.11", "224.0.0.1", "allowed: the address of one host"),
    ('port = "a-viewer1"', 'port = "a-line1"', "is not an edge port of A; allowed: a-viewer1"),
    ('side = "A"', 'side = "C"', "side is 'C'; allowed: 'A' or 'B'"),
    ("[[site.line]]", "[[site.lines]]", "site[1].lines is not a key; allowed here: name, A, B, line, host"),
    ("damping_s = 10", "damping_s = ", "is not TOML"),
    ('edge_ports = ["a-v', 'connect = "10.0.0.1:6654"\nedge_ports = ["a-v',
     "site[1].A.connect is '10.0.0.1:6654'; allowed: unix:/path"),
    ("[[site]]", "[site]", "allowed: a list, as [[site]]"),
    ('name = "home"', 'name = "ho me"', "site[1].name is 'ho me'; allowed: text of the form"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG)
def test_wrong_settings(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    """Each mistake is named with key, value and what is allowed."""
    assert right in GOOD
    with pytest.raises(SettingsError) as caught:
        load(write(tmp_path, GOOD.replace(right, wrong)))
    assert said in str(caught.value)


def test_every_mistake_at_once(tmp_path: Path) -> None:
    """All mistakes of a file are told together, each on its own line, none twice."""
    text = GOOD.replace("damping_s = 10", "damping_s = -1").replace('"line2"', '""')
    with pytest.raises(SettingsError) as caught:
        load(write(tmp_path, text))
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "damping_s" in lines[0]
    assert "site[1].line[2].name" in lines[1]


@pytest.mark.parametrize(
    ("name", "said"), [("missing.toml", "No such file"), (".", "Is a directory"), ("binary", "not UTF-8")]
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, said: str) -> None:
    """A file that is missing, no file or no text is named."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match=said):
        load(tmp_path / name)


def test_the_schema_is_fresh() -> None:
    """The published schema is what the settings are:
    `uv run python -m steerline_controller.shell.settings_schema > contract/schema/...` renews it."""
    assert SCHEMA.read_text() == schema_text()


def test_the_schema_takes_what_the_controller_takes() -> None:
    """The documented file holds against the published schema; one with a wrong key does not."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(tomllib.loads(GOOD), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(GOOD.replace("damping_s", "dampin_s")), schema)


def command(*argv: str) -> subprocess.CompletedProcess[str]:
    """The real command."""
    return subprocess.run(
        [sys.executable, "-m", "steerline_controller", *argv], capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("argv", [("check",), ("run", "--check")])
def test_check(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """`check` says that a file is right (status 0), or what is wrong (status 2)."""
    path = str(write(tmp_path, GOOD))
    done = command(*argv, "--settings", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "home: 2 lines" in done.stdout
    write(tmp_path, GOOD.replace("damping_s", "dampin_s"))
    done = command(*argv, "--settings", path)
    assert done.returncode == 2
    assert "dampin_s is not a key" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_teaches() -> None:
    """--help shows how to begin, every command, and a settings file that is right."""
    done = command("--help")
    assert done.returncode == 0
    for word in ("run", "check", "steer", "pin", "release", "drain", "undrain", "state", "[[site.line]]"):
        assert word in done.stdout


@pytest.mark.parametrize("which", ["openflow", "steering"])
def test_a_taken_port(tmp_path: Path, which: str) -> None:
    """A listen address that is taken is named, and the start stops with status 1."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        text = GOOD.replace("127.0.0.1:6653", "127.0.0.1:0").replace("127.0.0.1:50052", "127.0.0.1:0")
        text = text.replace(f'{which} = "127.0.0.1:0"', f'{which} = "127.0.0.1:{number}"')
        done = command("run", "--settings", str(write(tmp_path, text)))
    assert done.returncode == 1
    assert f"listen.{which} 127.0.0.1:{number}" in done.stderr
    assert "Traceback" not in done.stderr
