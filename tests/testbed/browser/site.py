"""The web server of a run on loopback, with a small film, and a plain Chromium to look at its pages."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from steerline_testbed.browser.films import FILM_OF_PAGE, ensure_film
from steerline_testbed.browser.web import prepare_web_server
from steerline_testbed.experiment.media_recipe import Recipe, VideoRate
from steerline_testbed.network.services import Certificates

# As many lines as the real film has, which is what the pages tell its qualities by; few bytes.
SMALL = Recipe(
    rates=(VideoRate(854, 480, 700_000, 40_000, 2), VideoRate(640, 360, 300_000, 20_000, 1)),
    loop_s=2,
    duration_s=60,
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--window-size=1100,760",
)


@dataclass(frozen=True)
class Site:
    """A running web server. Ports are this test's own."""

    plain: int
    tls: int
    http3: int
    ca: Path
    certificate: Path

    def page(self, path: str, tls: bool = False) -> str:
        """The address of something on it."""
        scheme, port = ("https", self.tls) if tls else ("http", self.plain)
        return f"{scheme}://127.0.0.1:{port}/{path}"


def all_films(dash: Path, cache: Path, folder: Path) -> Path:
    """Every further form of the film in one folder."""
    folder.mkdir()
    for page in FILM_OF_PAGE:
        made = ensure_film(page, dash, SMALL, cache)
        assert made is not None
        for path in made.iterdir():
            (folder / path.name).hardlink_to(path)
    return folder


@contextmanager
def serving(directory: Path, dash: Path, films: Path) -> Generator[Site]:
    """Starts nginx and caddy; ends them."""
    ports = _free_ports(3)
    certificates = Certificates(directory / "tls", ("127.0.0.1",))
    programs = prepare_web_server(directory, dash, certificates, ["127.0.0.1"], films, True, ports)
    with ExitStack() as stack:
        for name, command in programs.items():
            log = stack.enter_context((directory / f"{name}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"HOME": "/nowhere"})
            stack.callback(process.wait)
            stack.callback(process.terminate)
        for port in ports:
            wait_for(lambda port=port: _listens(port))
        tls = directory / "tls"
        yield Site(*ports, tls / "ca.pem", tls / "web.pem")


def _free_ports(count: int) -> tuple[int, int, int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        one, two, three = (each.getsockname()[1] for each in sockets)
        return one, two, three


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def plain_chromium(home: Path, flags: Sequence[str] = ()) -> Generator[webdriver.Chrome]:
    """A Chromium with an empty profile and nothing installed."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, *flags, f"--user-data-dir={home}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def wait_for(what: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Waits until `what()` is true, and returns it."""
    end = time.monotonic() + timeout_s
    while not (result := what()):
        assert time.monotonic() < end, f"not within {timeout_s} s"
        time.sleep(0.1)
    return result


def now(driver: webdriver.Chrome) -> dict[str, Any]:
    """What the page would record now."""
    return driver.execute_script("return steerline.now()")
