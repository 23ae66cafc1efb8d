"""A browser's private home: nothing of the user's is read, and nothing stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from steerline_testbed.browser.programs import BrowserName
from steerline_testbed.experiment.errors import ExperimentError

_INSTALL_TIMEOUT_S = 20.0
_QUIET = {
    "MOZ_CRASHREPORTER_DISABLE": "1",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/dev/null",
    "NO_AT_BRIDGE": "1",
}


def has_display() -> bool:
    """Whether there is a screen that a window could be on."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


class Home:
    """The folder of one browser: HOME, profile, temporary files, and the extension with its host."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.profile = path / "profile"
        self.extension = path / "extension"
        self._temporary = path / "tmp"

    def make(self, browser: BrowserName, extension: Path, sites: list[str]) -> None:
        """Lays it out. `sites` are match patterns that the extension may watch at once: nobody is there who
        could answer the browser's question."""
        for folder in (self.profile, self._temporary):
            folder.mkdir(parents=True)
        shutil.copytree(extension, self.extension)
        manifest = self.extension / "manifest.json"
        granted = json.loads(manifest.read_text()) | {"host_permissions": sites}
        manifest.write_text(json.dumps(granted))
        self._browser = browser

    def install_host(self, agent: Path, station: str, ca: Path, record: Path | None = None) -> None:
        """Tells this home's browser where the native host is, and where it writes what it reports.

        Raises ExperimentError.
        """
        command = [str(agent), "install", "--browser", self._browser, "--dir", str(self.path)]
        if self._browser == "chromium":
            command += ["--user-data-dir", str(self.profile)]
        command += ["--station", station, "--ca", str(ca)]
        if record is not None:
            command += ["--record", str(record)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
            env=self.environment(),
        )
        if done.returncode != 0:
            what = done.stderr.strip().partition("\n")[0]
            if "unrecognized subcommand" in what:
                what = f"{agent} is too old for it; build it with: make agent"
            raise ExperimentError(f"the native host cannot be installed: {what}")

    def environment(self, shown: bool = False) -> dict[str, str]:
        """What the browser is started with. With `shown` the person's display comes along."""
        keep = ["PATH", "LANG", "LC_ALL", "STEERLINE_AGENT"]
        if shown:
            keep += ["DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"]
        found = {name: os.environ[name] for name in keep if name in os.environ}
        if shown and "DISPLAY" in os.environ:
            found["XAUTHORITY"] = os.environ.get("XAUTHORITY", str(Path.home() / ".Xauthority"))
        return found | _QUIET | {"HOME": str(self.path), "TMPDIR": str(self._temporary)}

    def remove(self) -> None:
        """Twice is once."""
        shutil.rmtree(self.path, ignore_errors=True)
