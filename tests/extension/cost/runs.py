"""One run of the browser with a film: without an extension, with an empty one, with ours."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.extension.browser import EXTENSION_ID, FLAGS, chromium, wait_for

from .devtools import DevTools
from .processes import children, cpu_s, kind, memory_mb

KINDS = ("none", "empty", "ours")
# What any extension pays: a worker that lives and does nothing.
EMPTY_WORKER = "setInterval(() => chrome.runtime.getPlatformInfo(() => {}), 20000);"
SETTLE_S = 12
# Beside chromedriver's own pipe.
PORT = "--remote-debugging-port=0"


@dataclass
class Run:
    """Shares are CPU time over wall time; memory in MB of 1,000,000 bytes."""

    kind: str
    cpu: dict[str, float] = field(default_factory=dict[str, float])
    total: float = 0.0
    # Of ours alone: what the content script and the worker do, from profiles.
    content: float = 0.0
    worker: float = 0.0
    page_heap: float = 0.0
    worker_heap: float = 0.0
    extension: dict[str, float] = field(default_factory=dict[str, float])
    host: dict[str, float] = field(default_factory=dict[str, float])


def empty_extension(folder: Path) -> Path:
    folder.mkdir()
    manifest = {
        "manifest_version": 3,
        "name": "empty",
        "version": "1",
        "background": {"service_worker": "w.js"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "w.js").write_text(EMPTY_WORKER)
    return folder


@contextmanager
def plain(home: Path, extension: Path | None) -> Generator[webdriver.Chrome]:
    """A fresh profile, with this extension or none."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, PORT, f"--user-data-dir={home / 'profile'}"):
        options.add_argument(flag)
    options.enable_bidi = True
    options.enable_webextensions = True
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        if extension is not None:
            driver.webextension.install(path=str(extension))
        yield driver
    finally:
        driver.quit()


def run(name: str, home: Path, extension: Path, station: list[str], url: str, seconds: float) -> Run:
    """Plays the film, lets it settle, and measures for so long without a word to the browser; then, for ours,
    profiles for half of that."""
    home.mkdir()
    if name == "ours":
        opened = chromium(extension, home, station, PORT)
    else:
        opened = plain(home, empty_extension(home / "empty") if name == "empty" else None)
    with opened as driver:
        driver.get(url)
        wait_for(lambda: driver.execute_script("return document.getElementById('film').currentTime > 1"))
        time.sleep(SETTLE_S)
        devtools = DevTools((home / "profile" / "DevToolsActivePort").read_text().split()[0])
        pids = children(driver.service.process.pid)[1:]
        before, began = {pid: cpu_s(pid) for pid in pids}, time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        used: defaultdict[str, float] = defaultdict(float)
        for pid, then in before.items():
            used[kind(pid)] += max(0.0, cpu_s(pid) - then)
        found = Run(name, {key: value / took for key, value in used.items()})
        found.total = sum(value for key, value in found.cpu.items() if key != "host")
        for pid in pids:
            if kind(pid) == "extension":
                found.extension = memory_mb(pid)
            elif kind(pid) == "host":
                found.host = memory_mb(pid)
        page = devtools.attach("page", url)
        if name == "ours":
            profile(devtools, page, found, seconds / 2)
        found.page_heap = devtools.heap_mb(page)
        devtools.close()
    return found


def profile(devtools: DevTools, page: str, found: Run, seconds: float) -> None:
    prefix = f"chrome-extension://{EXTENSION_ID}/"
    worker = devtools.attach("service_worker", prefix)
    found.worker_heap = devtools.heap_mb(worker)
    for session in (page, worker):
        devtools.profile(session)
    time.sleep(seconds)
    found.content = devtools.busy_s(page, prefix) / seconds
    found.worker = devtools.busy_s(worker, prefix) / seconds
