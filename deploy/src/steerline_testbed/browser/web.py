"""The web server of browsers: nginx as for the headless player, with pages, players and TLS beside the film;
and caddy, which speaks HTTP/3 on a UDP port that no address names.

What nginx serves at port 80 it serves at 443 too, over HTTP/2 or HTTP/1.1. Where HTTP/3 is wanted it says so
in Alt-Svc: the port of the connection is then not that of the address, as it may be on the Internet.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from steerline_testbed.browser.players import find_bundles
from steerline_testbed.experiment import servers
from steerline_testbed.experiment.errors import ToolMissingError
from steerline_testbed.network.services import Certificates

PAGES = Path(__file__).resolve().parent / "pages"
TLS_PORT = 443
# Chromium leaves a port below 1024 only for another one below 1024.
HTTP3_PORT = 444

_TLS = """\
    listen {port} ssl http2;
    listen [::]:{port} ssl http2 ipv6only=on;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
"""
_ALT_SVC = """\
    add_header Alt-Svc 'h3=":{port}"; ma=3600' always;
"""
_CADDY = """\
# Made for one run of the testbed; removed with it.
{{
	admin off
	auto_https off
	storage file_system "{prefix}/storage"
	default_sni {name}
	servers {{
		protocols h1 h2 h3
	}}
}}
https://:{port} {{
	tls "{certificate}" "{key}"
	header Access-Control-Allow-Origin *
	header Timing-Allow-Origin *
	respond /alive 204
{handlers}}}
"""
_FOLDER = """\
	handle_path {path}* {{
		root * "{folder}"
		file_server
	}}
"""
_FILE = """\
	handle {path} {{
		root * "{folder}"
		rewrite * "/{name}"
		file_server
	}}
"""


def page_locations(film: Path | None = None) -> str:
    """nginx locations of pages and players, and of the further forms of the film in the folder `film`.

    Raises ToolMissingError when a player is not installed.
    """
    lines = [f'    location /watch/ {{ alias "{PAGES}/"; }}']
    lines += [f'    location = {path} {{ alias "{file}"; }}' for path, file in _files(film).items()]
    return "\n".join(lines) + "\n"


def prepare_web_server(
    directory: Path,
    media: Path,
    certificates: Certificates,
    addresses: Sequence[str],
    film: Path | None = None,
    http3: bool = False,
    ports: tuple[int, int, int] = (80, TLS_PORT, HTTP3_PORT),
) -> dict[str, list[str]]:
    """Lays out the web server below `directory`: commands to run in its namespace, by what they are.

    `media` is the DASH folder, `film` what `ensure_film` gave, `addresses` those of the server, which its
    certificate names. Raises ToolMissingError when a player is not installed, or caddy and HTTP/3 is wanted.
    """
    plain, tls, udp = ports
    certificate, key = certificates.issue("web", *addresses)
    more = page_locations(film) + _TLS.format(port=tls, certificate=certificate, key=key)
    if http3:
        more += _ALT_SVC.format(port=udp)
    programs = {"nginx of the video-server": servers.prepare_video_server(directory, media, more, plain)}
    if http3:
        name = "caddy of the video-server"
        programs[name] = _prepare_caddy(directory, media, certificate, key, addresses[0], film, udp)
    return programs


def _files(film: Path | None) -> dict[str, Path]:
    files = {f"/players/{name}": path for name, path in find_bundles().items()}
    if film is not None:
        files |= {f"/video/{path.name}": path for path in sorted(film.iterdir())}
    return files


def _prepare_caddy(
    directory: Path, media: Path, certificate: Path, key: Path, address: str, film: Path | None, port: int
) -> list[str]:
    if shutil.which("caddy") is None:
        raise ToolMissingError("caddy", "it serves HTTP/3; bring it with: make setup")
    prefix = directory / "http3-server"
    prefix.mkdir(exist_ok=True)
    # Exact paths before folders: the first handler that fits is the only one.
    handlers = [
        _FILE.format(path=path, folder=file.parent, name=file.name) for path, file in _files(film).items()
    ]
    folders: Mapping[str, Path] = {"/video/": media, "/watch/": PAGES}
    handlers += [_FOLDER.format(path=path, folder=folder) for path, folder in folders.items()]
    configuration = prefix / "Caddyfile"
    configuration.write_text(
        _CADDY.format(
            prefix=prefix,
            name=address,
            port=port,
            certificate=certificate,
            key=key,
            handlers="".join(handlers),
        )
    )
    command = ["caddy", "run", "--config", str(configuration), "--adapter", "caddyfile"]
    # Its own folders, not the user's.
    return ["env", f"HOME={prefix}", f"XDG_DATA_HOME={prefix}", f"XDG_CONFIG_HOME={prefix}", *command]
