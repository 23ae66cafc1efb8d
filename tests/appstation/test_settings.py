"""A wrong setting stops the start, with key, value and allowed range."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from steerline_appstation.errors import StartError
from steerline_appstation.settings import Settings, load

SCHEMA = Path(__file__).parents[2] / "contract" / "schema" / "appstation-settings.schema.json"

FULL = """
steering = "127.0.0.1:50052"
low_s = 20.0
high_s = 35.0
refill_s = 20.0
report_timeout_s = 5.0
customer_networks = ["198.18.0.0/16", "fd5e:1::/64"]
retention_s = 86400
[listen]
reports = "198.18.3.1:50051"
rest = "127.0.0.1:8080"
web = "198.18.3.1:8443"
[tls]
certificate = "cert.pem"
key = "key.pem"
[redis]
url = ""
directory = "/run/steerline/x/redis"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "appstation.toml"
    path.write_text(text)
    return path


def test_full_settings(tmp_path: Path) -> None:
    """The documented file is good; relative paths are beside it."""
    settings = load(written(tmp_path, FULL))
    assert settings.tls is not None
    assert settings.tls.key == str(tmp_path / "key.pem")
    assert settings.redis.directory == "/run/steerline/x/redis"
    assert [str(n) for n in settings.policy().customer_networks] == ["198.18.0.0/16", "fd5e:1::/64"]


def test_empty_settings_are_good(tmp_path: Path) -> None:
    """Every setting has a default, all on loopback."""
    settings = load(written(tmp_path, ""))
    assert settings.listen.reports == "127.0.0.1:50051"
    assert settings.policy().low_s == 20.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("low_s = -1", "low_s is -1; allowed: 0.5 to 600"),
        ("low_s = nan", "low_s is nan; allowed: 0.5 to 600"),
        ('low_s = "x"', "low_s is 'x'; allowed: 0.5 to 600"),
        ("low_s = 40", "high_s is 35; allowed: more than low_s (40)"),
        ("report_timeout_s = 0", "report_timeout_s is 0; allowed: 1 to 60"),
        ("retention_s = 1", "retention_s is 1; allowed: 60 to 31536000"),
        ("max_sessions = 1.5", "max_sessions is 1.5; allowed: a whole number, 1 to 1000000"),
        ("lows = 1", "lows is not a setting; allowed: steering, "),
        ("[listen]\nrest_api = 1", "listen.rest_api is not a setting; allowed: reports, rest"),
        ('[listen]\nrest = "8080"', "listen.rest is '8080'; allowed: address:port"),
        ('[listen]\nrest = "127.0.0.1:99999"', "listen.rest is '127.0.0.1:99999'; allowed: address:port"),
        ('[listen]\nrest = "::1:80"', "listen.rest is '::1:80'; allowed: write an IPv6 address in brackets"),
        ('[listen]\nrest = "0.0.0.0:80"', "listen.rest is 0.0.0.0:80, not loopback, and there is no [tls]"),
        ('[listen]\nreports = "198.18.3.1:1"', "listen.reports is 198.18.3.1:1, not loopback"),
        ('[listen]\nweb = "198.18.3.1:1"', "listen.web is 198.18.3.1:1, not loopback"),
        ('[listen]\nweb = "8443"', "listen.web is '8443'; allowed: address:port"),
        (
            'steering = "198.18.3.1:1"',
            "steering is 198.18.3.1:1, not loopback; allowed: that with steering_ca",
        ),
        (
            'customer_networks = ["198.18.0.1/16"]',
            "customer_networks.0 is '198.18.0.1/16'; allowed: a network",
        ),
        ('customer_networks = "198.18.0.0/16"', "customer_networks is '198.18.0.0/16'; allowed: a list"),
        ('log_format = "xml"', "log_format is 'xml'; allowed: console, json"),
        ('[tls]\ncertificate = "x"', "tls.key is missing; "),
        ("tls = 1", "tls is 1; allowed: a table with certificate, key"),
        ('[redis]\nurl = "http://x"', "redis.url is 'http://x'; allowed: redis://"),
        ("[redis]\nmax_memory_mb = 1", "redis.max_memory_mb is 1; allowed: a whole number, 16 to 65536"),
        ("low_s = ", "not TOML"),
    ],
)
def test_wrong_setting_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The error has file, key, value and what is allowed."""
    path = written(tmp_path, text)
    with pytest.raises(StartError) as caught:
        load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_all_errors_at_once(tmp_path: Path) -> None:
    """Whoever has three errors need not start three times."""
    with pytest.raises(StartError) as caught:
        load(written(tmp_path, "low_s = -1\nhigh_s = -1\nfoo = 1"))
    assert len(str(caught.value).splitlines()) == 3


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(StartError, match=r"nowhere\.toml: No such file"):
        load(tmp_path / "nowhere.toml")


def test_schema_is_fresh() -> None:
    """contract/schema holds what `steerline-appstation schema` prints."""
    told = subprocess.run(
        [sys.executable, "-m", "steerline_appstation", "schema"], capture_output=True, text=True, check=True
    ).stdout
    assert SCHEMA.read_text() == told, f"stale: steerline-appstation schema > {SCHEMA.name}"
    assert json.loads(told) == Settings.model_json_schema()


@pytest.mark.parametrize(("text", "good"), [(FULL, True), ("low_s = -1", False), ("foo = 1", False)])
def test_schema_says_what_the_parser_says(text: str, good: bool) -> None:
    """The JSON Schema takes the documented file and refuses a wrong range and an unknown key."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert cast(Any, jsonschema.Draft202012Validator(schema)).is_valid(tomllib.loads(text)) is good
