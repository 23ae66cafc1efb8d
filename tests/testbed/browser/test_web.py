"""The web server speaks what it shall, in pieces too, and says what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steerline_testbed.browser import players
from steerline_testbed.browser.web import HTTP3_PORT, prepare_web_server
from steerline_testbed.experiment.errors import ToolMissingError
from steerline_testbed.network.services import Certificates

from .site import Site


def ask(site: Site, address: str, *options: str) -> str:
    """The head of an answer, as curl shows it."""
    command = ["curl", "-sS", "--cacert", str(site.ca), "-D-", "-o", "/dev/null", *options, address]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout.lower()


@pytest.mark.parametrize(
    ("option", "tls", "says"),
    [("-4", False, "http/1.1 200"), ("--http1.1", True, "http/1.1 200"), ("--http2", True, "http/2 200")],
)
def test_the_same_is_served_plainly_and_over_tls(site: Site, option: str, tls: bool, says: str) -> None:
    """Pages, players and film; the certificate is the run's own and names the address."""
    for path in (
        "watch/dashjs.html",
        "watch/page.css",
        "players/dash.js",
        "video/manifest.mpd",
        "video/film.mp4",
    ):
        assert ask(site, site.page(path, tls), option).startswith(says), path


def test_http3_is_announced_on_another_port_than_the_address_s(site: Site) -> None:
    """Only where it was asked for, and below 1024 by default: Chromium leaves 443 for nothing higher."""
    assert f'alt-svc: h3=":{site.http3}"' in ask(site, site.page("watch/", tls=True) + "index.html")
    assert site.http3 != site.tls and HTTP3_PORT < 1024 and HTTP3_PORT != 443


def test_files_come_in_pieces_from_either_server(site: Site) -> None:
    """A range of a film is answered with that range."""
    for port in (site.tls, site.http3):
        head = ask(site, f"https://127.0.0.1:{port}/video/film.webm", "-r", "1000-1999")
        assert " 206" in head.splitlines()[0] and "content-range: bytes 1000-1999/" in head, port
        assert "content-type: video/webm" in head and "content-length: 1000" in head, port


def test_without_http3_there_is_one_server_and_no_announcement(dash: Path, tmp_path: Path) -> None:
    """nginx alone."""
    certificates = Certificates(tmp_path / "tls", ("127.0.0.1",))
    programs = prepare_web_server(tmp_path, dash, certificates, ["198.19.0.1"])
    assert list(programs) == ["nginx of the video-server"]
    assert "Alt-Svc" not in (tmp_path / "video-server" / "nginx.conf").read_text()


def test_a_player_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it."""
    monkeypatch.setattr(players, "BUNDLES", {"hls.js": "hls.js/dist/nothing.js"})
    with pytest.raises(ToolMissingError, match=r"the player hls\.js is missing.*make setup"):
        players.find_bundles()


def test_a_missing_caddy_is_named(dash: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HTTP/3 is wanted."""
    monkeypatch.setenv("PATH", str(tmp_path))
    certificates = Certificates(tmp_path / "tls", ("127.0.0.1",))
    with pytest.raises(ToolMissingError, match=r"caddy is missing.*make setup"):
        prepare_web_server(tmp_path, dash, certificates, ["127.0.0.1"], http3=True)
