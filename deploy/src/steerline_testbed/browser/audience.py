"""The browsers of a run: one per customer, each with its worker in the customer's namespace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steerline_testbed.browser.pages_of import VIDEO_SERVER, page_url, site_patterns
from steerline_testbed.browser.plan import TabPlan, WatchPlan
from steerline_testbed.browser.profile import has_display
from steerline_testbed.browser.programs import BrowserName, find_programs
from steerline_testbed.browser.protocols import chromium_flags, firefox_preferences
from steerline_testbed.browser.reporting import Track, compare, read_track
from steerline_testbed.experiment.agent import STATION_URL, find_agent
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.clock import Zero
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.jsons import parse_mapping
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.network import Network, Process

READY_PATIENCE_S = 90.0
# Two tabs that begin together would be told apart by chance; the third is paused once it plays.
SECOND_TAB_S, THIRD_TAB_S, PAUSE_S = 3.0, 6.0, 12.0


class Audience:
    """Starts the browsers on blank pages, then lets them all go at time zero."""

    def __init__(
        self,
        network: Network,
        settings: RunSettings,
        raw: Path,
        browser: BrowserName,
        flags: Sequence[str] = (),
    ) -> None:
        self._network = network
        self._settings = settings
        self._raw = raw.resolve()
        self._browser: BrowserName = browser
        self._more_flags = flags
        self._ready: dict[str, Path] = {}
        self._versions: dict[str, str] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        """The browser's own name and version, once it is ready."""
        return self._versions

    @property
    def _go(self) -> Path:
        return self._network.directory / "go"

    def start(self) -> dict[str, Process]:
        """One worker per customer, by name. Raises ToolMissingError."""
        found: dict[str, Process] = {}
        for number, node in enumerate(self._settings.viewers, start=1):
            plan = self._plan(number)
            path = self._network.directory / f"player{number}.plan"
            path.write_text(plan.model_dump_json(indent=2))
            name = f"player {number} ({self._browser})"
            found[name] = self._network.spawn(node, worker_command(path), log=f"player{number}.log")
            self._ready[name] = plan.ready
        return found

    def wait_ready(self, assert_alive: Callable[[], None]) -> None:
        """Returns when every browser shows its blank page.

        Raises ExperimentError, or what `assert_alive` does.
        """
        until_s = time.monotonic() + READY_PATIENCE_S
        while missing := [name for name, path in self._ready.items() if not path.exists()]:
            assert_alive()
            if time.monotonic() > until_s:
                raise ExperimentError(f"{', '.join(missing)}: not ready within {READY_PATIENCE_S:g} s")
            time.sleep(0.05)
        for path in self._ready.values():
            facts = parse_mapping(path.read_bytes()) or {}
            self._versions = {self._browser: f"{facts.get('name')} {facts.get('version')}"}

    def reporting(self, zero: Zero, end_s: float) -> dict[str, dict[str, Any]]:
        """What the station heard, held against the pages, by the name of the record."""
        tracks: dict[str, Track] = {}
        for number, node in enumerate(self._settings.viewers, start=1):
            addresses = self._network.node(node).addresses
            for tab in self._tabs(number):
                tracks[tab.record.stem] = read_track(tab.record, addresses, zero)
        return compare(self._raw / "reports.jsonl", tracks, zero, end_s)

    def go(self, zero: Zero) -> None:
        """They open their pages now."""
        replace_file(self._go, f"{zero.monotonic_s:.6f}".encode())

    def _plan(self, number: int) -> WatchPlan:
        settings, directory = self._settings, self._network.directory
        programs = find_programs(self._browser)
        return WatchPlan(
            browser=self._browser,
            program=programs.browser,
            driver=programs.driver,
            extension=programs.extension,
            agent=find_agent().resolve(),
            station=STATION_URL,
            ca=self._network.certificates.ca,
            sites=site_patterns(),
            tabs=self._tabs(number),
            home=directory / f"player{number}",
            log=directory / f"player{number}-browser.log",
            host_record=self._raw / f"host{number}.jsonl",
            ready=directory / f"player{number}.ready",
            go=self._go,
            screenshots=self._raw / f"player{number}",
            screenshot_at_s=list(settings.screenshot_at_s),
            shown=settings.show and has_display(),
            flags=[*self._flags(), *self._more_flags],
            preferences=firefox_preferences(settings.http),
        )

    def _flags(self) -> list[str]:
        """Options that tie Chromium to one version of HTTP."""
        http = self._settings.http
        if http == "1.1":  # the page comes without TLS, which is never anything else
            return ["--disable-quic"]
        return chromium_flags(self._network.directory / "tls" / "web.pem", http, VIDEO_SERVER)

    def _tabs(self, number: int) -> list[TabPlan]:
        url = page_url(self._settings)
        if not self._settings.tabs:
            return [self._tab(url, number, 0.0)]
        first, second = 2 * number - 1, 2 * number
        paused = TabPlan(
            url=url,
            session_id=f"paused{number}",
            record=self._raw / f"paused{number}.jsonl",
            open_at_s=THIRD_TAB_S,
            pause_at_s=PAUSE_S,
        )
        return [self._tab(url, first, 0.0), self._tab(url, second, SECOND_TAB_S), paused]

    def _tab(self, url: str, video: int, open_at_s: float) -> TabPlan:
        record = self._raw / f"player{video}.jsonl"
        return TabPlan(url=url, session_id=f"video{video}", record=record, open_at_s=open_at_s)


def worker_command(plan: Path) -> list[str]:
    """The worker as the first process of a PID namespace: whatever it started ends with it.

    That holds when the runner is killed, too: `unshare` dies with its parent, and --kill-child passes it on.
    """
    worker = [sys.executable, "-m", "steerline_testbed.browser.worker", str(plan)]
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *worker]
