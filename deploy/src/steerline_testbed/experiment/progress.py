"""What a run shows of itself while it goes on: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steerline_testbed.experiment.series import DecisionRow, Sample

BUFFER_GOAL_S = 55.0
PLAIN_EVERY_S = 10.0
BAR_CELLS = 30


@dataclass(frozen=True, slots=True)
class Moment:
    """The run as it is now."""

    title: str
    time_s: float
    duration_s: float
    players: Sequence[Sample]
    line_share: dict[str, float]
    downloads: int
    download_bps: float
    decisions: Sequence[DecisionRow] = field(default_factory=tuple)


class Progress(Protocol):
    """Somebody who is told how a run goes."""

    def phase(self, text: str) -> None:
        """What is being done now."""
        ...

    def moment(self, now: Moment) -> None:
        """The run as it is; called about twice a second."""
        ...

    def decided(self, row: DecisionRow) -> None:
        """The controller moved something."""
        ...


class Silent:
    """Shows nothing."""

    def phase(self, text: str) -> None:
        """Ignores it."""

    def moment(self, now: Moment) -> None:
        """Ignores it."""

    def decided(self, row: DecisionRow) -> None:
        """Ignores it."""


def decision_text(row: DecisionRow) -> str:
    """One decision as a line for people."""
    what = row.session_id or row.flow or "traffic"
    way = f"{row.from_line or 'new'} → {row.to_line}" if row.to_line else ""
    return f"{row.time_s:6.1f} s  {row.kind:<7} {what[:44]}  {way}  {row.reason}".rstrip()


def player_text(sample: Sample) -> str:
    """One player as a line for people."""
    stalls = f"{sample.stall_count} stalls, {sample.stall_s:.1f} s" if sample.stall_count else "no stall"
    return (
        f"video {sample.video}: {sample.buffer_s:5.1f} s buffered, {sample.height}p, "
        f"{sample.state.lower()}, {stalls}"
    )


class Plain:
    """Lines for a log or a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = 0.0
        self._last_phase = ""

    def phase(self, text: str) -> None:
        """Writes a phase once; what follows its colon (how much is done) does not make it another."""
        name = text.partition(":")[0]
        if name != self._last_phase:
            self._last_phase = name
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def moment(self, now: Moment) -> None:
        """Writes a line each 10 s."""
        if now.time_s < self._next_s:
            if now.time_s < self._next_s - 2 * PLAIN_EVERY_S:
                self._next_s = 0.0  # another run has begun
            return
        self._next_s = (now.time_s // PLAIN_EVERY_S + 1) * PLAIN_EVERY_S
        lines = " ".join(f"{100 * share:.0f}" for share in now.line_share.values())
        players = "; ".join(player_text(one) for one in now.players[:3]) or "no player yet"
        self._console.print(
            f"[{now.title}] {now.time_s:5.0f}/{now.duration_s:.0f} s  {players}  | lines % {lines} | "
            f"{now.downloads} downloads, {now.download_bps / 1e6:.1f} Mbps",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    def decided(self, row: DecisionRow) -> None:
        """Writes decisions about a session; those about single best-effort flows would drown the rest."""
        if row.session_id:
            self._console.print(f"    {decision_text(row)}", highlight=False, markup=False, soft_wrap=True)


class Picture:
    """A live picture: buffers, lines and the last decisions."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._phase = ""
        self._recent: list[DecisionRow] = []

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def phase(self, text: str) -> None:
        """Shows what is being done."""
        self._recent = []
        self._live.update(Text(f"… {text}"))

    def decided(self, row: DecisionRow) -> None:
        """Keeps the last eight."""
        self._recent = [*self._recent, row][-8:]

    def moment(self, now: Moment) -> None:
        """Draws anew."""
        head = Text(f"{now.title}   {now.time_s:5.0f} s of {now.duration_s:.0f} s", style="bold")
        players = Table.grid(padding=(0, 1))
        for one in now.players[:12]:
            style = "red" if one.buffer_s < 20 else "yellow" if one.buffer_s < 35 else "green"
            bar = _bar(one.buffer_s / BUFFER_GOAL_S, style)
            state = Text(one.state.lower(), style="bold red" if one.state == "REBUFFERING" else "")
            stalls = f"{one.stall_count} stalls {one.stall_s:.1f} s" if one.stall_count else "no stall"
            players.add_row(
                f"video {one.video}", bar, f"{one.buffer_s:5.1f} s", f"{one.height}p", state, stalls
            )
        lines = Table.grid(padding=(0, 1))
        for name, used in now.line_share.items():
            lines.add_row(name, _bar(used, "cyan"), f"{100 * used:4.0f} %")
        traffic = Text(f"{now.downloads} downloads, together {now.download_bps / 1e6:.1f} Mbps")
        decisions = Text("\n".join(decision_text(row)[:150] for row in self._recent), style="dim")
        self._live.update(Group(head, players, lines, traffic, decisions))


def _bar(share: float, style: str) -> Text:
    full = round(max(0.0, min(1.0, share)) * BAR_CELLS)
    return Text("█" * full, style=style) + Text("░" * (BAR_CELLS - full), style="dim")


@contextmanager
def showing(console: Console, plain: bool = False) -> Generator[Progress]:
    """A live picture where there is a terminal, plain lines elsewhere."""
    if plain or not console.is_terminal:
        yield Plain(console)
        return
    with Picture(console) as picture:
        yield picture
