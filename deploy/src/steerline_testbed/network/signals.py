"""Signals that end a run: in order, and not in the middle of its tear-down."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType


def end_in_order() -> Callable[[], None]:
    """Let SIGTERM and SIGHUP unwind this process; what undoes it. Only the main thread can,
    and only where nobody has.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    mine = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)

    def restore() -> None:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)

    return restore


@contextlib.contextmanager
def undisturbed() -> Generator[None]:
    """A second Ctrl-C does not cut the tear-down short."""
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
