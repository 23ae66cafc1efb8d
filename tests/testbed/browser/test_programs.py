"""Browsers, drivers and the built extension: found, or named with what brings them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from steerline_testbed.browser import programs
from steerline_testbed.browser.programs import BrowserName
from steerline_testbed.experiment.errors import ExperimentError, ToolMissingError
from steerline_testbed.experiment.settings import RunSettings


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize(
    ("browser", "said"),
    [("chromium", "apt-get install chromium chromium-driver"), ("firefox", "apt-get install firefox-esr")],
)
def test_a_missing_browser_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, browser: BrowserName, said: str
) -> None:
    """An empty machine: the error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match=said):
        programs.find_programs(browser)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Chromium without chromedriver is not enough."""
    program(tmp_path / "chromium")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match=r"chromedriver is missing.*chromium-driver"):
        programs.find_programs("chromium")


@pytest.mark.parametrize(
    "line", ["exec /snap/bin/chromium", 'if ! [ -x /snap/bin/chromium ]; then echo "no"; fi']
)
def test_a_snap_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str) -> None:
    """Ubuntu's package is a wrapper around a snap, which sees neither our folders nor our namespaces."""
    program(tmp_path / "chromium", f"#!/bin/sh\n{line}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match=r"is a snap.*STEERLINE_CHROMIUM"):
        programs.find_programs("chromium")


def test_a_named_program_must_be_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable that names nothing is an error of its own, not a reason to take another browser."""
    monkeypatch.setenv("STEERLINE_FIREFOX", str(tmp_path / "none"))
    with pytest.raises(ToolMissingError, match=r"STEERLINE_FIREFOX.*none, which is not a program"):
        programs.find_programs("firefox")


@pytest.mark.parametrize(
    "wrong", [{"page": "mp4"}, {"http": "2"}, {"tabs": True}, {"show": True}, {"screenshot_at_s": [1]}]
)
def test_the_headless_player_has_nothing_of_a_browser(wrong: dict[str, object]) -> None:
    """What only a browser has is refused without one, and the option is named."""
    with pytest.raises(ExperimentError, match=f"{next(iter(wrong))} is .*allowed: .* chromium or firefox"):
        RunSettings.parse(wrong)
    assert RunSettings.parse({"player": "chromium", **wrong}).player == "chromium"


def test_tabs_are_two_videos_of_one_customer() -> None:
    """With tabs each customer watches two videos; both are measured at its place."""
    settings = RunSettings.parse({"player": "chromium", "tabs": True, "videos": 2})
    assert settings.viewers == ["viewer1", "viewer2"]
    assert settings.seats == ["viewer1", "viewer1", "viewer2", "viewer2"]
