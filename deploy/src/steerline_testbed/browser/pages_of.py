"""Which page a browser watches, as its address."""

from __future__ import annotations

from urllib.parse import urlencode

from steerline_testbed.experiment.settings import RunSettings

VIDEO_SERVER = "198.19.0.1"
DEFAULT_GOAL_S = 55


def page_url(settings: RunSettings) -> str:
    """The page of the settings' player, with its options."""
    options = {"autoplay": "1"}
    if settings.page in ("mp4", "webm"):  # the browser itself fetches, by no rule of ours
        return _address(settings, options)
    options["rule"] = settings.rule
    if settings.rule != "default":
        options["goal"] = f"{float(settings.overrides.get('agent.goal', DEFAULT_GOAL_S)):g}"
    return _address(settings, options)


def _address(settings: RunSettings, options: dict[str, str]) -> str:
    scheme = "http" if settings.http == "1.1" else "https"
    return f"{scheme}://{VIDEO_SERVER}/watch/{settings.page}.html?{urlencode(options)}"


def site_patterns() -> list[str]:
    """Match patterns of the pages' site, on every port."""
    return [f"*://{VIDEO_SERVER}/*"]
