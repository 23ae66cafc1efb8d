"""A real Chromium speaks the version of HTTP that it is told to, and trusts the run's server for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from steerline_testbed.browser.protocols import Http, chromium_flags

from .site import Site, now, plain_chromium, wait_for


@pytest.mark.parametrize(("http", "spoken"), [("1.1", "http/1.1"), ("2", "h2"), ("3", "h3")])
def test_it_speaks_what_it_is_told_to(site: Site, tmp_path: Path, http: Http, spoken: str) -> None:
    """Over TLS. HTTP/3 begins where the page by HTTP/2 has announced it, on a port that no address names."""
    flags = chromium_flags(site.certificate, http, "127.0.0.1", site.http3)
    with plain_chromium(tmp_path / "profile", flags) as driver:
        driver.get(site.page("watch/dashjs.html?goal=20", tls=True))
        wait_for(lambda: now(driver)["buffer_s"] > 16)
        rows = driver.execute_script("return steerline.drain()")
        last = [row["protocol"] for row in rows if row["kind"] == "segment"][-3:]
        assert last == [spoken] * 3
        assert set(driver.execute_script("return steerline.protocols()")) <= {spoken, "h2"}
        assert driver.execute_script("return location.port") == str(site.tls)
