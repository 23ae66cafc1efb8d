"""One run, from an empty machine to summary.json and back to an empty machine."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steerline_testbed.browser.films import ensure_film
from steerline_testbed.browser.profile import has_display
from steerline_testbed.browser.programs import find_programs
from steerline_testbed.experiment import media, stage
from steerline_testbed.experiment.agent import find_agent
from steerline_testbed.experiment.clock import Zero, utc_text
from steerline_testbed.experiment.errors import ExperimentError, ToolMissingError
from steerline_testbed.experiment.measure import Measurement, read_records
from steerline_testbed.experiment.media_recipe import Recipe
from steerline_testbed.experiment.progress import Progress
from steerline_testbed.experiment.results import (
    assert_free,
    clear,
    keep_logs,
    owned,
    release_room,
    reserve_room,
    write_results,
)
from steerline_testbed.experiment.series import Recording
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.experiment.stage import Stage
from steerline_testbed.experiment.summary import Circumstances
from steerline_testbed.network import Network, TestbedError
from steerline_testbed.network.plan import check_run_id
from steerline_testbed.network.tools import require_root

ROOM_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """What to run and where to put it."""

    settings: RunSettings
    out: Path
    force: bool = False
    run_id: str = ""


def execute(order: Order, progress: Progress) -> Mapping[str, Any]:
    """Runs it and returns the summary.

    Raises TestbedError (and what interrupts: KeyboardInterrupt, SystemExit) with whatever was measured
    written as a partial result, and the network removed.
    """
    require_root()
    if order.run_id:
        check_run_id(order.run_id)
    assert_free(order.out, order.force)
    _assert_tools(order.settings)
    if media.find(Recipe(), media.default_cache()) is None:
        progress.phase("making the video, once; it takes a minute or two")

    def tell(what: str, done: float) -> None:
        progress.phase(f"{what}: {done:4.0%}")

    folder = media.ensure(Recipe(), progress=tell)
    film: Path | None = None
    if order.settings.player != "headless":
        film = ensure_film(order.settings.page, folder, Recipe(), progress=tell)
    try:
        with owned(order.out):
            return _execute(order, folder, film, progress)
    except OSError as error:
        raise ExperimentError(f"{error.filename or order.out}: {error.strerror}") from None


def _execute(order: Order, media_folder: Path, film: Path | None, progress: Progress) -> Mapping[str, Any]:
    raw = order.out / "raw"
    clear(order.out)
    raw.mkdir()
    if shutil.disk_usage(raw).free < ROOM_BYTES:
        raise stage.disk_full(raw)
    try:
        reserve_room(order.out)
        return _Run(order, raw, media_folder, film, progress).execute()
    finally:
        release_room(order.out)


def _assert_tools(settings: RunSettings) -> None:
    if settings.videos:
        find_agent()
    if settings.player != "headless":
        find_programs(settings.player)
    for tool, package in (("nginx", "nginx-light"), ("ss", "iproute2")):
        if shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") is None and shutil.which(tool) is None:
            raise ToolMissingError(tool, f"install it (Debian, Ubuntu: apt-get install {package})")


class _Run:
    """The state of one run between its phases, so that a failure in any keeps what was there."""

    def __init__(
        self, order: Order, raw: Path, media_folder: Path, film: Path | None, progress: Progress
    ) -> None:
        self._order = order
        self._settings = order.settings
        self._raw = raw
        self._media = media_folder
        self._film = film
        self._progress = progress
        self._run_id = order.run_id or f"run-{secrets.token_hex(3)}"
        self._zero: Zero | None = None
        self._started_at = ""
        self._measurement: Measurement | None = None
        self._assertion: dict[str, Any] = {}
        self._seen: dict[str, int] = {}
        self._retransmitted: dict[str, int] = {}
        self._enforcement: dict[str, Any] | None = None
        self._load: float | None = None
        self._versions: Mapping[str, str] = {}
        self._reporting: Mapping[str, Mapping[str, Any]] = {}
        self._end_s = 0.0

    def execute(self) -> Mapping[str, Any]:
        failure: BaseException | None = None
        try:
            self._progress.phase("building the network")
            with Network.create(self._settings.topology(), self._run_id, say=self._progress.phase) as network:
                try:
                    self._perform(Stage(network, self._settings, self._raw))
                finally:
                    with contextlib.suppress(OSError):
                        keep_logs(network.directory, self._order.out / "logs")
                    self._progress.phase("removing the network")
        except (TestbedError, KeyboardInterrupt, SystemExit, OSError) as error:
            failure = error
        if self._zero is None:
            assert failure is not None
            raise self._named(failure)
        summary = self._write(_reason(failure))
        if failure is not None:
            self._progress.phase(f"{self._order.out} keeps what was measured, marked as partial")
            raise self._named(failure)
        return summary

    def _named(self, failure: BaseException) -> BaseException:
        if isinstance(failure, OSError):
            return ExperimentError(f"{failure.filename or self._order.out}: {failure.strerror}")
        return failure

    def _perform(self, on: Stage) -> None:
        network, progress = on.network, self._progress
        progress.phase("starting the switches")
        network.start_switches()
        progress.phase("measuring whether the network is the one asked for")
        self._assertion = network.check().as_dict()
        progress.phase("starting controller, station and servers")
        on.start_core(self._media, self._film)
        if self._settings.player != "headless":
            blind = self._settings.show and not has_display()
            why = ", without a window: neither DISPLAY nor WAYLAND_DISPLAY is set" if blind else ""
            progress.phase(f"starting {self._settings.player}{why}")
        on.prepare_players()
        busy_before, total_before = stage.processor_times()
        retransmitted_before = on.retransmitted()
        self._zero = zero = Zero.now()
        self._started_at = utc_text()
        self._measurement = measurement = Measurement(on, zero, progress)
        try:
            on.start_players(zero)
            on.start_traffic(zero)
            measurement.run(self._settings.duration_s)
        finally:
            self._end_s = min(measurement.now_s(), self._settings.duration_s)
            busy, total = stage.processor_times()
            self._load = (busy - busy_before) / (total - total_before) if total > total_before else None
            with contextlib.suppress(TestbedError, OSError, ValueError):
                self._collect(on, retransmitted_before)

    def _collect(self, on: Stage, retransmitted_before: Mapping[str, int]) -> None:
        """What is asked of the programs at the end, while they still live."""
        if on.audience is not None:
            self._versions = on.audience.versions
        self._seen = on.congestion_control()
        self._retransmitted = {
            node: max(0, count - retransmitted_before.get(node, 0))
            for node, count in on.retransmitted().items()
        }
        self._enforcement = on.enforcement()
        on.stop(*[name for name in on.cast if name.startswith(("player", "download gen", "browsing"))])
        if on.audience is not None and self._zero is not None:
            on.stop("application station")  # so that its record is whole
            self._reporting = on.audience.reporting(self._zero, self._end_s)

    def _write(self, failure: str) -> Mapping[str, Any]:
        assert self._zero is not None
        release_room(self._order.out)
        recording = Recording()
        if self._measurement is not None:
            recording.lines = self._measurement.recording.lines
        read_records(self._raw, len(self._settings.seats), self._zero, self._end_s, recording)
        described = media.describe(self._media)
        known = Circumstances(
            run_id=self._run_id,
            started_at=self._started_at,
            end_s=self._end_s,
            failure=failure,
            versions={**stage.versions(), **self._versions},
            media={"key": described["key"], "streams": _without_sizes(described["streams"])},
            self_assertion=self._assertion,
            congestion_control_seen=self._seen,
            enforcement=self._enforcement,
            reporting=self._reporting,
            retransmitted_segments=self._retransmitted,
            cpu_share=self._load,
        )
        self._progress.phase(f"writing {self._order.out}")
        return write_results(self._order.out, self._settings, recording, known)


def _reason(failure: BaseException | None) -> str:
    if failure is None:
        return ""
    if isinstance(failure, KeyboardInterrupt | SystemExit):
        return "interrupted"
    return str(failure) or type(failure).__name__


def _without_sizes(streams: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "segment_bytes"} for one in streams]
