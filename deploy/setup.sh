#!/usr/bin/env bash
# Installs what is missing and says what and why. Says nothing when all is there.
# Supported: Debian 12 and 13, Ubuntu 24.04.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.local/bin:$HOME/.cargo/bin:$PATH" UV_PYTHON_DOWNLOADS=never

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root for: $* (run as root, or install sudo)"
  fi
}

# ------------------------------------------------------------ system packages
# command or file | package | why
packages=(
  "ovs-vswitchd|openvswitch-switch|the switches"
  "redis-server|redis-server|sessions, decisions and time series"
  "ffmpeg|ffmpeg|makes the video"
  "nginx|nginx-light|serves the video and the downloads"
  "caddy|caddy|speaks HTTP/3 to browsers, which nginx cannot"
  "nft|nftables|the household's address translation"
  "tc|iproute2|namespaces and shaped lines"
  "ethtool|ethtool|turns offloads off"
  "ping|iputils-ping|measures base delay"
  "tcpdump|tcpdump|looks at packets in tests"
  "curl|curl|asks the station in tests and how-tos"
  "shellcheck|shellcheck|lints shell scripts"
  "cc|gcc|links the agent"
  "/usr/include/stdio.h|libc6-dev|links the agent"
  "python3|python3|services and science"
  "npm|npm|brings buf, which guards the wire"
)
# Wanted by tests in real browsers; left out where the distribution has no such package (Ubuntu ships snaps).
browsers=(
  "chromium|chromium|tests of the extension in Chromium"
  "chromedriver|chromium-driver|drives Chromium in tests"
  "firefox-esr|firefox-esr|tests of the extension in Firefox"
)
missing=() lines=()
for entry in "${packages[@]}"; do
  IFS='|' read -r probe package why <<<"$entry"
  if [[ $probe == /* ]]; then
    [ -e "$probe" ] && continue
  else
    command -v "$probe" >/dev/null || [ -x "/usr/sbin/$probe" ] || [ -x "/sbin/$probe" ] && continue
  fi
  missing+=("$package")
  lines+=("$package: $why")
done
optional=()
for entry in "${browsers[@]}"; do
  IFS='|' read -r probe package why <<<"$entry"
  command -v "$probe" >/dev/null && continue
  grep -q '^ID=debian' /etc/os-release || continue
  optional+=("$package")
  lines+=("$package: $why")
done
missing+=("${optional[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || die "needs ${missing[*]}; this system has no apt-get (supported: Debian 12 and 13, Ubuntu 24.04)"
  say "installing system packages:"
  printf 'setup:   %s\n' "${lines[@]}"
  # The daemons that the packages bring are not wanted: every run starts its own.
  policy=/usr/sbin/policy-rc.d made_policy=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod +x "$policy"
    made_policy=1
  fi
  log=$(mktemp)
  if ! { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    [ -z "$made_policy" ] || as_root rm -f "$policy"
    tail -n 20 "$log" >&2
    die "apt-get failed (above); whole log: $log"
  fi
  [ -z "$made_policy" ] || as_root rm -f "$policy"
  rm -f "$log"
fi

# ------------------------------------------------------------ Rust
rust_least=1.88 # what the packages in Cargo.lock ask for
rust_enough() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$rust_least" "$1" | sort -V | head -n 1)" = "$rust_least" ]; }
rust_found() { rustc --version 2>/dev/null | awk '{print $2}' || true; }
rust_packaged() { apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" {sub(/[+~-].*/, "", $2); print $2}'; }
# Never in place of a Rust that somebody installed: --no-remove.
rust_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-remove --no-install-recommends "$@" >/dev/null 2>&1; }
if ! rust_enough "$(rust_found)"; then
  why="the agent needs $rust_least or later, found $(rust_found | grep . || echo none)"
  # Debian keeps a recent Rust for its browsers, named -web, beside that of its release.
  for names in "rustc cargo rustfmt rust-clippy" "rustc-web cargo-web rustfmt-web rust-web-clippy"; do
    command -v rustup >/dev/null && break
    read -ra names <<<"$names"
    rust_enough "$(rust_packaged "${names[0]}")" || continue
    say "installing system packages ${names[*]}: $why"
    rust_install "${names[@]}" && break
  done
  hash -r
  if ! rust_enough "$(rust_found)"; then
    say "installing Rust by rustup: $why, packaged $(rust_packaged rustc | grep . || echo none)"
    command -v rustup >/dev/null || rust_install rustup ||
      curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal -c rustfmt -c clippy
    hash -r
    # A distribution's rustup cannot update itself, and calls that a failure.
    failed=$(rustup toolchain install stable --no-self-update --profile minimal -c rustfmt -c clippy 2>&1) ||
      die "rustup could not install Rust's stable release: $failed"
    rustup default >/dev/null 2>&1 || rustup default stable >/dev/null 2>&1 || true
    rust_enough "$(rust_found)" || rustup override set stable >/dev/null 2>&1 || true
  fi
  rust_enough "$(rust_found)" || die "needs Rust $rust_least or later; found $(rust_found | grep . || echo none) ($(command -v rustc || echo 'no rustc'))"
fi

# ------------------------------------------------------------ Python
python=
for candidate in python3.13 python3.12 python3.11 python3; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(command -v "$candidate")
    break
  fi
done
[ -n "$python" ] || die "needs Python 3.11 or later; found $(python3 --version 2>&1)"
if ! command -v uv >/dev/null; then
  say "installing uv into ~/.local: locks and installs the Python packages"
  if ! "$python" -m venv --help >/dev/null 2>&1 || ! "$python" -m ensurepip --version >/dev/null 2>&1; then
    say "installing system package python3-venv: uv's own home"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
  fi
  "$python" -m venv "$HOME/.local/share/steerline-uv"
  "$HOME/.local/share/steerline-uv/bin/pip" install --quiet uv
  mkdir -p "$HOME/.local/bin"
  ln -sf "$HOME/.local/share/steerline-uv/bin/uv" "$HOME/.local/bin/uv"
fi
if ! uv sync --quiet --frozen --all-packages --check 2>/dev/null; then
  say "installing Python packages into .venv (uv.lock)"
  uv sync --quiet --frozen --all-packages --python "$python"
fi

# ------------------------------------------------------------ node
if ! compgen -G 'node_modules/@bufbuild/buf-linux-*/bin/buf' >/dev/null || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  say "installing node packages (package-lock.json): buf for the wire, the extension's tools, the pages' players"
  log=$(mktemp)
  npm ci --no-audit --no-fund >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "npm ci failed (above)"; }
  rm -f "$log"
fi
