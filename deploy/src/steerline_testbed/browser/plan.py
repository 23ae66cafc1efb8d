"""What one browser is asked to do, as the runner tells its worker: one JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from steerline_testbed.browser.programs import BrowserName


class TabPlan(BaseModel):
    """One tab. Times are seconds since time zero."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    session_id: str
    record: Path = Field(description="Where the page's records go, as JSON lines.")
    open_at_s: float = 0.0
    pause_at_s: float | None = None


class WatchPlan(BaseModel):
    """One browser, from its start to its end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    browser: BrowserName
    program: Path
    driver: Path | None
    extension: Path
    agent: Path
    station: str
    ca: Path
    sites: list[str]
    tabs: list[TabPlan]
    home: Path = Field(description="Made by the worker, and removed by it.")
    log: Path = Field(description="The browser's own output, and its driver's.")
    host_record: Path | None = Field(
        default=None, description="Where the native host adds what it reports, as JSON lines."
    )
    ready: Path = Field(
        description="Written when the browser shows its blank page: name and version as JSON."
    )
    go: Path = Field(description="Appears with time zero in it: seconds of CLOCK_MONOTONIC.")
    screenshots: Path = Field(description="Beginning of the screenshots' paths.")
    screenshot_at_s: list[float] = Field(default_factory=list[float])
    shown: bool = False
    flags: list[str] = Field(default_factory=list[str], description="Further options of Chromium.")
    preferences: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Further ones of Firefox."
    )
