"""`steerline-agent install`, `uninstall` and `status`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.agent.station import Station

from .host import AGENT

FOLDERS = {
    "chromium": ".config/chromium/NativeMessagingHosts",
    "chrome": ".config/google-chrome/NativeMessagingHosts",
    "edge": ".config/microsoft-edge/NativeMessagingHosts",
    "firefox": ".mozilla/native-messaging-hosts",
}


def agent(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(AGENT), *arguments, "--dir", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("browser", FOLDERS)
def test_each_browser_finds_the_host(tmp_path: Path, browser: str) -> None:
    """The manifest lies where this browser looks, allows our extension alone, and its program starts."""
    assert agent(tmp_path, "install", "--browser", browser).returncode == 0
    manifest = json.loads((tmp_path / FOLDERS[browser] / "steerline.agent.json").read_text())
    assert (manifest["name"], manifest["type"]) == ("steerline.agent", "stdio")
    if browser == "firefox":
        assert manifest["allowed_extensions"] == ["extension@steerline"]
    else:
        assert manifest["allowed_origins"] == ["chrome-extension://dhhahajopihmhogjpodcniomgmlejjoi/"]
    out = subprocess.run(
        [manifest["path"], "x"], input=b"", capture_output=True, timeout=10, check=True
    ).stdout
    assert json.loads(out[4 : 4 + int.from_bytes(out[:4], "little")])["type"] == "hello"


def test_uninstall_leaves_nothing(tmp_path: Path) -> None:
    """After uninstall no file is left, and a second uninstall is fine."""
    agent(tmp_path, "install", *(word for browser in FOLDERS for word in ("--browser", browser)))
    assert agent(tmp_path, "uninstall", "--browser", "edge").returncode == 0
    assert (tmp_path / ".local/share/steerline/native-host").exists()
    assert agent(tmp_path, "uninstall").returncode == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert agent(tmp_path, "uninstall").returncode == 0


def test_a_profile_of_its_own_gets_its_own_manifest(tmp_path: Path) -> None:
    """With --user-data-dir the manifest lies in that profile."""
    profile = tmp_path / "profile"
    result = agent(tmp_path, "install", "--browser", "chromium", "--user-data-dir", str(profile))
    assert result.returncode == 0, result.stderr
    assert (profile / "NativeMessagingHosts" / "steerline.agent.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install"], "--browser is compulsory: chromium, chrome, edge or firefox"),
        (["install", "--browser", "lynx"], "possible values: chromium, chrome, edge, firefox"),
        (["install", "--browser", "edge", "--station", "http://198.18.3.1:1"], "only with TLS"),
        (["install", "--browser", "edge", "--station", "https://h:1", "--ca", "/none.pem"], "/none.pem"),
        (["install", "--browser", "edge", "--extension-id", "ABC"], "32 letters a to p"),
    ],
)
def test_a_wrong_wish_is_refused_with_what_is_allowed(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    """A wrong option changes nothing, and names what is allowed."""
    result = agent(tmp_path, *arguments)
    assert result.returncode != 0
    assert said in result.stderr
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


async def test_status_says_what_is_wrong(tmp_path: Path, station: Station) -> None:
    """One line each: all is well, nothing there, station away, starter gone, manifest broken."""

    async def status() -> tuple[int, str]:
        result = await asyncio.to_thread(agent, tmp_path, "status")
        return result.returncode, result.stdout

    assert (await status())[1].startswith("installed for no browser")
    installed = await asyncio.to_thread(
        agent, tmp_path, "install", "--browser", "firefox", *station.arguments
    )
    assert installed.returncode == 0, installed.stderr
    code, out = await status()
    assert (code, out.splitlines()) == (
        0,
        ["firefox: the extension finds this program", f"station {station.url}/: answers"],
    )
    await station.die()
    code, out = await status()
    assert code == 1 and "does not answer" in out.splitlines()[1]
    starter = tmp_path / ".local/share/steerline/native-host"
    starter.unlink()
    code, out = await status()
    assert code == 1 and "No such file" in out and "steerline-agent install --browser firefox" in out
    (tmp_path / FOLDERS["firefox"] / "steerline.agent.json").write_text("{")
    code, out = await status()
    assert code == 1 and "is no JSON" in out
