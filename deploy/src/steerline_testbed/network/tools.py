"""The system's own tools: which are needed, whether they are here, and how one is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from steerline_testbed.network.errors import BuildError, MissingRequirementError

PACKAGE_OF = {
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
    "ss": "iproute2",
    "ethtool": "ethtool",
    "nft": "nftables",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "ovsdb-tool": "openvswitch-common",
    "ovsdb-server": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-common",
    "ovs-appctl": "openvswitch-common",
}
"""Each tool and the Debian and Ubuntu package that brings it."""

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def search_path() -> str:
    """PATH, with the administrator's folders that a user's shell may lack.

    An explicitly empty one stays empty.
    """
    path = os.environ.get("PATH", _SYSTEM_PATH)
    return f"{path}:/usr/sbin:/sbin" if "/usr/bin" in path.split(":") else path


def require_root() -> None:
    """MissingRequirementError unless namespaces may be made."""
    if os.geteuid() != 0:
        raise MissingRequirementError(
            "the testbed makes network namespaces and wants root: run it with sudo "
            f"(effective user is {os.geteuid()}, wanted 0)"
        )


def require_tools() -> None:
    """MissingRequirementError naming every missing tool and the package that brings it."""
    path = search_path()
    missing = [tool for tool in PACKAGE_OF if shutil.which(tool, path=path) is None]
    if missing:
        what = ", ".join(f"{tool} (package {PACKAGE_OF[tool]})" for tool in missing)
        packages = " ".join(sorted({PACKAGE_OF[tool] for tool in missing}))
        raise MissingRequirementError(f"missing: {what}; bring them with: apt-get install {packages}")


def require_kernel(congestion_control: str, wants_netem: bool, wants_ipv6: bool) -> None:
    """MissingRequirementError naming what this kernel cannot do of what the topology asks for."""
    probe = subprocess.run(
        ["unshare", "--net", "true"], env=tool_env(), capture_output=True, text=True, check=False
    )
    if probe.returncode != 0:
        raise MissingRequirementError(
            "this system does not let root make a network namespace (wanted: CAP_SYS_ADMIN and "
            f"CAP_NET_ADMIN, which many containers lack): {probe.stderr.strip()}"
        )
    if wants_netem and not has_netem():
        raise MissingRequirementError(
            "delay_ms is asked for, but this kernel has no netem queue (module sch_netem); allowed here: "
            "delay_ms = 0, or a kernel that brings it (Debian's linux-image-amd64)"
        )
    if wants_ipv6 and not Path("/proc/sys/net/ipv6").exists():
        raise MissingRequirementError(
            "ipv6 is asked for, but this kernel has none; allowed here: ipv6 = false"
        )
    available = congestion_controls()
    if congestion_control not in available:
        subprocess.run(
            ["modprobe", f"tcp_{congestion_control}"], env=tool_env(), capture_output=True, check=False
        ) if shutil.which("modprobe", path=search_path()) else None
        available = congestion_controls()
    if congestion_control not in available:
        raise MissingRequirementError(
            f"congestion_control is {congestion_control!r}, which this kernel lacks; "
            f"allowed here: {', '.join(available)}"
        )


def has_netem() -> bool:
    """Whether this kernel can delay packets; tried in a namespace that ends with the trial."""
    argv = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(argv, env=tool_env(), capture_output=True, check=False).returncode == 0


def congestion_controls() -> list[str]:
    """What TCP can use on this kernel now."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()


def tool_env() -> dict[str, str]:
    """The environment for system tools: their messages in English, their folders on the path."""
    return {**os.environ, "LC_ALL": "C", "PATH": search_path()}


def call(argv: Sequence[str], step: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run a tool to its end and give its output; BuildError says in which step it failed, and how."""
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={**tool_env(), **(env or {})},
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{step}: {argv[0]} did not end within 30 s") from None
    if done.returncode != 0:
        answer = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise BuildError(f"{step}: {' '.join(argv[:6])}: {answer}")
    return done.stdout


def ip_batch(namespace: str, commands: Sequence[str], step: str) -> None:
    """Commands of `ip` in a namespace, in one process."""
    call(["ip", "-n", namespace, "-batch", "-"], step, stdin="\n".join(commands) + "\n")


def tc_batch(namespace: str, commands: Sequence[str], step: str) -> None:
    """Commands of `tc` in a namespace, in one process."""
    call(["tc", "-n", namespace, "-batch", "-"], step, stdin="\n".join(commands) + "\n")


def nft(namespace: str, rules: str, step: str) -> None:
    """Load nftables rules in a namespace."""
    call(["ip", "netns", "exec", namespace, "nft", "-f", "-"], step, stdin=rules)


def no_offloads(namespace: str, devices: Sequence[str], step: str) -> None:
    """Switch off what would make checksums unreal and frames larger than the wire's."""
    features = "rx off tx off sg off tso off gso off gro off rxvlan off txvlan off"
    script = " && ".join(f"ethtool -K {device} {features}" for device in devices)
    call(["ip", "netns", "exec", namespace, "sh", "-c", script], step)
