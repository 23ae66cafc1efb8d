"""The headless player: where its program is, and how it is called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.errors import ToolMissingError

MANIFEST_URL = "http://198.19.0.1/video/manifest.mpd"
STATION_URL = "https://198.18.3.1:50051"


def find_agent() -> Path:
    """The agent's program: $STEERLINE_AGENT, the checkout's release build, or the PATH.

    Raises ToolMissingError that says how to build it.
    """
    named = os.environ.get("STEERLINE_AGENT")
    if named:
        if os.access(named, os.X_OK):
            return Path(named)
        raise ToolMissingError("steerline-agent", f"STEERLINE_AGENT is {named}, which is not a program")
    for parent in Path(__file__).resolve().parents:
        built = parent / "target" / "release" / "steerline-agent"
        if os.access(built, os.X_OK):
            return built
    found = shutil.which("steerline-agent")
    if found:
        return Path(found)
    raise ToolMissingError("steerline-agent", "build it with: make agent")


def agent_command(
    program: Path, video: int, ca: Path, record: Path, rule: str, seed: int, overrides: Mapping[str, Any]
) -> list[str]:
    """The command of one player, who watches until it is told to end.

    `rule` is on (the stated buffer-based rule) or off; `overrides` become further options: goal=30 is
    --goal 30.
    """
    command = [str(program), "play", MANIFEST_URL, "--station", STATION_URL, "--ca", str(ca), "--quiet"]
    command += ["--rule", "buffer" if rule == "on" else "off", "--session-prefix", f"video{video}"]
    command += ["--record", str(record), "--seed", str(seed)]
    for name, value in overrides.items():
        option = f"--{name.replace('_', '-')}"
        command += [option] if value is True else [option, str(value)]
    return command
