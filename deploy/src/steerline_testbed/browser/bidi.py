"""A browser that is driven over WebDriver BiDi by Selenium: the same few commands for every browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PICTURE = {"type": "image/jpeg", "quality": 0.8}


class PageError(Exception):
    """A script threw in the page."""


class Driven:
    """One running browser. `contexts` and `scripts` are Selenium's BiDi modules of its connection.

    Commands raise selenium's WebDriverException when the browser does not answer.
    """

    def __init__(
        self,
        name: str,
        version: str,
        contexts: Any,
        scripts: Any,
        alive: Callable[[], bool],
        end: Callable[[], None],
    ) -> None:
        self.name = name
        self.version = version
        self.alive = alive
        self.end = end
        self._contexts = contexts
        self._scripts = scripts

    def open_tab(self) -> str:
        """A new blank tab in front; returns its context."""
        return str(self._contexts.create(type="tab"))

    def tabs(self) -> list[str]:
        """The contexts of all tabs."""
        return [str(one.context) for one in self._contexts.get_tree(max_depth=0)]

    def close_tab(self, tab: str) -> None:
        """Closes it."""
        self._contexts.close(context=tab)

    def activate(self, tab: str) -> None:
        """Brings it to the front: browsers load no media in tabs that were never seen."""
        self._contexts.activate(context=tab)

    def go(self, tab: str, url: str) -> None:
        """Begins to load a page; returns at once."""
        self._contexts.navigate(context=tab, url=url, wait="none")

    def ask(self, tab: str, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON. Raises PageError when it throws."""
        answer = self._scripts.evaluate(
            expression=f"JSON.stringify({expression})", target={"context": tab}, await_promise=True
        )
        if answer["type"] == "exception":
            raise PageError(answer["exceptionDetails"].get("text", "a script threw"))
        text = answer["result"].get("value")
        return None if text is None else json.loads(text)

    def screenshot(self, tab: str, path: Path) -> None:
        """What a viewer of this tab sees now, as JPEG."""
        picture = self._contexts.capture_screenshot(context=tab, format=_PICTURE)
        path.write_bytes(base64.b64decode(picture))
