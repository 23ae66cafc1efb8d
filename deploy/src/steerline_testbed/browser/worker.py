"""Runs in a customer's namespace: starts a real browser, lets it watch, and writes down what the pages tell.

It is the first process of a PID namespace of its own (see `command.py`), so the kernel ends the browser,
its driver and the native host with it, however it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from selenium.common.exceptions import WebDriverException

from steerline_testbed.browser.bidi import Driven, PageError
from steerline_testbed.browser.chromium import start_chromium
from steerline_testbed.browser.firefox import start_firefox
from steerline_testbed.browser.plan import TabPlan, WatchPlan
from steerline_testbed.browser.profile import Home
from steerline_testbed.browser.programs import Programs
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.errors import ExperimentError

POLL_S = 0.5
WATCH_S = 0.1
GONE = 4
# With less the picture stands for want of data, and not because the processor is late.
EMPTY_S = 0.5
# A page that is not there after this time will not come.
PAGE_PATIENCE_S = 20.0
_DRAIN = "window.steerline ? window.steerline.drain() : null"
# Browsers pause a muted film in a tab that nobody sees. What is heard of it is the browser's to mute.
_UNMUTE = "[...document.querySelectorAll('video')].map((video) => { video.muted = false; }).length"
_PAUSE = "[...document.querySelectorAll('video')].map((video) => video.pause()).length"


@dataclass(slots=True)
class _Tab:
    """One tab of the plan, and what has become of it."""

    context: str
    plan: TabPlan
    pause_at_s: float | None
    opened: bool = False
    seen: bool = False
    plays: bool = False


class Worker:
    """One browser and its viewer."""

    def __init__(self, plan: WatchPlan) -> None:
        self._plan = plan
        self._home = Home(plan.home)
        self._ending = threading.Event()
        self._zero_s = 0.0
        # The first stall that lasts is worth a picture of its own.
        self._frozen_seen = self._frozen_now = False

    def run(self) -> int:
        """Until SIGTERM, or until the browser has gone. Returns the exit status."""
        signal.signal(signal.SIGTERM, self._end)
        plan = self._plan
        self._home.make(plan.browser, plan.extension, plan.sites)
        try:
            self._home.install_host(plan.agent, plan.station, plan.ca, plan.host_record)
            browser = self._start()
            threading.Thread(target=self._watch_over, args=(browser,), daemon=True).start()
            try:
                facts = {"name": browser.name, "version": browser.version}
                replace_file(plan.ready, json.dumps(facts).encode())
                zero_s = self._wait_for_go()
                if zero_s is not None:
                    self._view(browser, zero_s)
            finally:
                self._ending.set()
                browser.end()
        finally:
            self._home.remove()
        return 0

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ending.set()

    def _start(self) -> Driven:
        plan = self._plan
        programs = Programs(plan.program, plan.driver, plan.extension)
        if plan.browser == "firefox":
            return start_firefox(programs, self._home, plan.log, plan.shown, plan.preferences)
        return start_chromium(programs, self._home, plan.log, plan.shown, plan.flags)

    def _watch_over(self, browser: Driven) -> None:
        """A browser that has died answers nothing for long: say so at once."""
        while browser.alive():
            if self._ending.wait(WATCH_S):
                return
        _say(f"{self._plan.browser} has ended by itself, or was killed; its log is {self._plan.log.name}")
        self._home.remove()
        os._exit(GONE)

    def _wait_for_go(self) -> float | None:
        """Time zero (CLOCK_MONOTONIC, s) once it has come; None when the end came first."""
        while not self._ending.wait(0.01):
            with contextlib.suppress(FileNotFoundError):
                return float(self._plan.go.read_text())
        return None

    def _view(self, browser: Driven, zero_s: float) -> None:
        self._zero_s = zero_s
        tabs = self._tabs(browser)
        shots = sorted(self._plan.screenshot_at_s)
        due_s = 0.0
        while True:
            now_s = time.monotonic() - zero_s
            for tab in tabs:
                self._attend(browser, tab, now_s)
            if shots and now_s >= shots[0]:
                self._shoot(browser, tabs, shots.pop(0))
            elif self._frozen_now and shots:
                self._frozen_now = False
                self._shoot(browser, tabs, now_s)
            due_s = max(due_s + POLL_S, time.monotonic() - zero_s)
            if self._ending.wait(max(0.0, due_s - (time.monotonic() - zero_s))):
                break
        for tab in tabs:
            self._drain(browser, tab)

    def _tabs(self, browser: Driven) -> list[_Tab]:
        (first, *_) = browser.tabs()
        return [
            _Tab(context=first if number == 0 else "", plan=one, pause_at_s=one.pause_at_s)
            for number, one in enumerate(self._plan.tabs)
        ]

    def _attend(self, browser: Driven, tab: _Tab, now_s: float) -> None:
        if not tab.opened:
            if now_s < tab.plan.open_at_s:
                return
            tab.context = tab.context or browser.open_tab()
            browser.go(tab.context, tab.plan.url)
            tab.opened = True
            return
        if tab.pause_at_s is not None and tab.plays and now_s >= tab.pause_at_s:
            tab.pause_at_s = None
            browser.ask(tab.context, _PAUSE)
        self._drain(browser, tab)

    def _drain(self, browser: Driven, tab: _Tab) -> None:
        if not tab.opened:
            return
        try:
            rows: Any = browser.ask(tab.context, _DRAIN)
        except (PageError, WebDriverException) as error:
            # A page between two documents has no realm to ask; one that stays so shows in the record's end.
            _say(f"{tab.plan.session_id}: the page does not answer: {_first_line(error)}")
            return
        if rows is None:
            self._judge_absence(browser, tab)
            return
        if not tab.seen:
            tab.seen = True
            browser.ask(tab.context, _UNMUTE)
        if rows:
            last = rows[-1]
            tab.plays = last.get("player_state") == "PLAYING"
            if (
                not self._frozen_seen
                and last.get("player_state") == "REBUFFERING"
                and last["buffer_s"] < EMPTY_S
            ):
                self._frozen_seen = self._frozen_now = True
            lines = [json.dumps({"session_id": tab.plan.session_id} | row) + "\n" for row in rows]
            with tab.plan.record.open("a", encoding="utf-8") as out:
                out.write("".join(lines))

    def _judge_absence(self, browser: Driven, tab: _Tab) -> None:
        """Raises ExperimentError when the tab shows something else than a page of the testbed."""
        late = time.monotonic() - self._zero_s - tab.plan.open_at_s > PAGE_PATIENCE_S
        if late and not tab.seen:
            title = browser.ask(tab.context, "document.title || document.body?.innerText?.slice(0, 80) || ''")
            raise ExperimentError(f"{tab.plan.url} is no page of the testbed; it shows {title!r}")

    def _shoot(self, browser: Driven, tabs: Sequence[_Tab], at_s: float) -> None:
        """The tab in front. To paint one that nobody sees would cost a loaded machine seconds."""
        front = [tab for tab in tabs if tab.opened][-1:]
        for tab in front:
            try:
                browser.screenshot(tab.context, Path(f"{self._plan.screenshots}-{at_s:03.0f}s.jpg"))
            except WebDriverException as error:
                _say(f"no screenshot at {at_s:g} s: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The worker's command line: one plan, as a JSON file."""
    parser = argparse.ArgumentParser(prog="python -m steerline_testbed.browser.worker")
    parser.add_argument("plan", type=Path, help="the JSON file of a WatchPlan")
    plan = WatchPlan.model_validate_json(parser.parse_args().plan.read_bytes())
    try:
        return Worker(plan).run()
    except (ExperimentError, WebDriverException, OSError) as error:
        _say(f"{plan.browser}: {_first_line(error)}")
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
