"""A real Firefox on the real network: what its page plays is reported, and its flow is steered."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_runs import check_steered, perform_browser

pytestmark = pytest.mark.network


def test_firefox_is_steered_and_reported_as_it_is(tmp_path: Path) -> None:
    """The page's own connections are moved by its session's decisions; what is heard is true."""
    check_steered(perform_browser(tmp_path / "run", "firefox"))
