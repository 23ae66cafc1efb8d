"""The servers behind the provider switch: nginx with its own configuration in the run's directory.

The system's nginx, its files and its service are not touched. Workers run as root because the
media cache may lie in a home directory that others cannot read; they serve only inside the run's
namespaces.
"""

from __future__ import annotations

import os
from pathlib import Path

# Sparse: costs no disk. 256 GiB last a minute at 34 Gbps, any experiment at a line's rate.
BIG_FILE_BYTES = 256 * 2**30
OBJECT_KIB = (4, 16, 64, 256, 1024)

_BASE = """\
# Made for one run of the testbed; removed with it.
daemon off;
user root;
worker_processes 1;
pid {prefix}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  types {{
    application/dash+xml mpd;
    video/mp4 mp4 m4s;
    text/html html;
    text/javascript js mjs;
    text/css css;
    video/webm webm;
    application/vnd.apple.mpegurl m3u8;
    application/octet-stream bin;
  }}
  client_body_temp_path {prefix}/body;
  proxy_temp_path {prefix}/proxy;
  fastcgi_temp_path {prefix}/fastcgi;
  uwsgi_temp_path {prefix}/uwsgi;
  scgi_temp_path {prefix}/scgi;
  sendfile on;
  sendfile_max_chunk 256k;
  tcp_nodelay on;
  # nginx's own defaults, stated because a player's connections live and die by them.
  keepalive_timeout 75s;
  keepalive_requests 1000;
  server {{
    listen {port};
    listen [::]:{port} ipv6only=on;
    root {prefix}/html;
    add_header Access-Control-Allow-Origin * always;
    add_header Timing-Allow-Origin * always;
    location = /alive {{ return 204; }}
{locations}  }}
}}
"""


def nginx_configuration(prefix: Path, locations: str = "", port: int = 80) -> str:
    """The text of an nginx.conf that keeps every file of the server below `prefix`."""
    return _BASE.format(prefix=prefix, locations=locations, port=port)


def prepare_video_server(directory: Path, media: Path, more: str = "", port: int = 80) -> list[str]:
    """Lays out the video server below `directory`; returns the command to run in its namespace.

    The manifest is at /video/manifest.mpd. `more` are directives of the server: what browsers want beside it.
    """
    prefix = _prefix(directory / "video-server")
    locations = f'    location /video/ {{ alias "{media}/"; }}\n{more}'
    return _write(prefix, locations, port)


def prepare_download_server(directory: Path) -> list[str]:
    """Lays out the download server below `directory`; returns the command to run in its namespace.

    /big.bin never ends within an experiment; /object-<n>k.bin are what web pages are made of.
    """
    prefix = _prefix(directory / "download-server")
    make_endless(prefix / "html" / "big.bin")
    for kib in OBJECT_KIB:
        _sparse(prefix / "html" / f"object-{kib}k.bin", kib * 1024)
    return _write(prefix, "")


def _prefix(prefix: Path) -> Path:
    (prefix / "html").mkdir(parents=True, exist_ok=True)
    return prefix


def _write(prefix: Path, locations: str, port: int = 80) -> list[str]:
    configuration = prefix / "nginx.conf"
    configuration.write_text(nginx_configuration(prefix, locations, port))
    return ["nginx", "-p", str(prefix), "-c", str(configuration), "-e", "stderr"]


def make_endless(path: Path) -> None:
    """A file that no download finishes within an experiment, and that takes no room."""
    _sparse(path, BIG_FILE_BYTES)


def _sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        os.truncate(file.fileno(), size_bytes)
