"""The players that the pages use, as npm brings them: where their built files are."""

from __future__ import annotations

from pathlib import Path

from steerline_testbed.experiment.errors import ToolMissingError

# Name below /players/ -> file below node_modules, as deploy/pages/package.json pins it.
BUNDLES = {
    "dash.js": "dashjs/dist/modern/umd/dash.mediaplayer.min.js",
    "hls.js": "hls.js/dist/hls.min.js",
    "shaka.js": "shaka-player/dist/shaka-player.compiled.js",
}


def find_bundles() -> dict[str, Path]:
    """Each player's built file by its name below /players/.

    Raises ToolMissingError that names the first one that is not installed.
    """
    return {name: _find(name, Path("node_modules") / path) for name, path in BUNDLES.items()}


def _find(name: str, path: Path) -> Path:
    for parent in Path(__file__).resolve().parents:
        if (parent / path).is_file():
            return parent / path
    raise ToolMissingError(
        f"the player {name}", f"there is no {path} in the checkout; bring it with: make setup"
    )
