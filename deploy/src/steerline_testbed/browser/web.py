"""What a browser fetches beside the film: the pages at /watch/ and the players at /players/."""

from __future__ import annotations

from pathlib import Path

from steerline_testbed.browser.players import find_bundles

PAGES = Path(__file__).resolve().parent / "pages"


def page_locations() -> str:
    """nginx locations of pages and players. Raises ToolMissingError when a player is not installed."""
    lines = [f'    location /watch/ {{ alias "{PAGES}/"; }}']
    lines += [
        f'    location = /players/{name} {{ alias "{path}"; }}' for name, path in find_bundles().items()
    ]
    return "\n".join(lines) + "\n"
