"""Network namespaces: make, enter from a thread, see who lives there, remove."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from steerline_testbed.network.errors import BuildError
from steerline_testbed.network.tools import call

NETNS_DIRECTORY = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def make(namespace: str) -> None:
    """A new namespace with lo up; BuildError when the name is taken."""
    call(["ip", "netns", "add", namespace], f"make namespace {namespace}")
    call(["ip", "-n", namespace, "link", "set", "lo", "up"], f"bring lo up in {namespace}")


def exists(namespace: str) -> bool:
    """Whether the system knows a namespace of this name."""
    return (NETNS_DIRECTORY / namespace).exists()


def inside(namespace: str, work: Callable[[], T]) -> T:
    """Do `work` with the namespace's network, in a thread of its own; the caller stays where it is.

    Sockets and files of /proc/thread-self/net that `work` opens keep that network after it.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            descriptor = os.open(NETNS_DIRECTORY / namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number), namespace)
            finally:
                os.close(descriptor)
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=enter, name=f"inside-{namespace}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def set_sysctls(namespace: str, settings: Iterable[tuple[str, str]]) -> None:
    """Write per-namespace kernel settings, as in ("net/ipv4/ip_forward", "1")."""

    def write() -> None:
        for key, value in settings:
            (Path("/proc/sys") / key).write_text(value, encoding="ascii")

    try:
        inside(namespace, write)
    except OSError as error:
        raise BuildError(f"kernel setting in {namespace}: {error}") from None


def inhabitants(namespaces: Iterable[str]) -> list[int]:
    """Processes whose network is one of these namespaces; never this process."""
    inodes = {(NETNS_DIRECTORY / name).stat().st_ino for name in namespaces if exists(name)}
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            inode = (entry / "ns/net").stat().st_ino
        except OSError:
            continue  # ended meanwhile
        if inode in inodes:
            found.append(int(entry.name))
    return found


def kill_inhabitants(namespaces: Iterable[str], timeout_s: float = 5) -> int:
    """End every process in these namespaces at once; how many there were."""
    names = list(namespaces)
    killed: set[int] = set()
    deadline_s = time.monotonic() + timeout_s
    while left := inhabitants(names):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        if time.monotonic() > deadline_s:
            raise BuildError(f"processes {left} in {', '.join(names)} do not end")
        time.sleep(0.01)
    return len(killed)


def remove(namespace: str) -> None:
    """Remove a namespace and all devices in it, if it is there."""
    if exists(namespace):
        call(["ip", "netns", "del", namespace], f"remove namespace {namespace}")


def has_ipv6() -> bool:
    """Whether this kernel speaks IPv6 at all."""
    return Path("/proc/sys/net/ipv6").exists()
