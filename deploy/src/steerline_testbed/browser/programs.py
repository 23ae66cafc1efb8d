"""Where browsers, drivers and the built extension are. Each error says how to get what is missing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from steerline_testbed.experiment.errors import ToolMissingError

BrowserName = Literal["chromium", "firefox"]
BROWSERS: tuple[BrowserName, ...] = get_args(BrowserName)

# Debian's names first; a browser of another origin is named by the variable.
_PROGRAMS = {
    "chromium": ("chromium", "google-chrome-stable", "google-chrome", "microsoft-edge"),
    "firefox": ("firefox-esr", "firefox"),
}
_VARIABLES = {"chromium": "STEERLINE_CHROMIUM", "firefox": "STEERLINE_FIREFOX"}
_PACKAGES = {"chromium": "chromium chromium-driver", "firefox": "firefox-esr"}
_DRIVER_VARIABLE = "STEERLINE_CHROMEDRIVER"


@dataclass(frozen=True, slots=True)
class Programs:
    """What a browser is run with. `driver` is None where the browser speaks WebDriver BiDi by itself."""

    browser: Path
    driver: Path | None
    extension: Path


def find_programs(browser: BrowserName) -> Programs:
    """Browser, driver and extension. Raises ToolMissingError."""
    program = _named(_VARIABLES[browser]) or _first(_PROGRAMS[browser])
    if program is None:
        raise ToolMissingError(
            browser,
            f"install it (Debian: apt-get install {_PACKAGES[browser]}), "
            f"or name one in {_VARIABLES[browser]}",
        )
    _refuse_snap(browser, program)
    return Programs(program, _find_driver() if browser == "chromium" else None, find_extension(browser))


def installed(browser: BrowserName) -> bool:
    """Whether this machine has the browser with its driver; the extension is a matter of building it."""
    try:
        find_programs(browser)
    except ToolMissingError as error:
        return error.tool.startswith("extension")
    return True


def find_extension(browser: BrowserName) -> Path:
    """The built extension of the checkout. Raises ToolMissingError that says how to build it."""
    for parent in Path(__file__).resolve().parents:
        source = parent / "client-agent" / "extension"
        if source.is_dir():
            built = source / "dist" / browser
            if (built / "manifest.json").is_file():
                return built
            break
    raise ToolMissingError(
        f"extension for {browser}",
        "build it with: npm ci && npm run build -w client-agent/extension",
    )


def _find_driver() -> Path:
    driver = _named(_DRIVER_VARIABLE) or _first(("chromedriver",))
    if driver is None:
        raise ToolMissingError(
            "chromedriver",
            f"install it (Debian: apt-get install chromium-driver), or name one in {_DRIVER_VARIABLE}",
        )
    return driver


def _named(variable: str) -> Path | None:
    text = os.environ.get(variable)
    if not text:
        return None
    if not os.access(text, os.X_OK):
        raise ToolMissingError(variable, f"it names {text}, which is not a program")
    return Path(text)


def _first(names: tuple[str, ...]) -> Path | None:
    return next((Path(found) for name in names if (found := shutil.which(name))), None)


def _refuse_snap(browser: BrowserName, program: Path) -> None:
    """A snap sees neither our folders nor our namespaces; Ubuntu's packages are wrappers around one."""
    with program.open("rb") as file:
        head = file.read(4096)
    wrapper = head.startswith(b"#!") and b"/snap/bin/" in head
    if wrapper or program.resolve() == Path("/usr/bin/snap") or str(program).startswith("/snap/"):
        raise ToolMissingError(
            browser,
            f"{program} is a snap, which cannot be run in a network namespace; "
            f"install a package of {browser} and name its program in {_VARIABLES[browser]}",
        )
