"""Networks of other shapes pass their own assertion."""

from __future__ import annotations

from pathlib import Path

import pytest

from steerline_testbed.network import LineSpec, MissingRequirementError, Network, Topology, line, tools

pytestmark = pytest.mark.network


@pytest.mark.parametrize(
    "topology",
    [
        pytest.param(
            Topology(
                line=(
                    LineSpec(name="fast", capacity_bps=20_000_000),
                    LineSpec(name="slow", capacity_bps=1_000_000, queue_packets=20),
                    LineSpec(name="radio", capacity_bps=5_000_000, loss=0.02),
                ),
                viewers=3,
                nat=True,
                station_side="B",
                congestion_control="bbr",
            ),
            id="unequal-lossy-nat-station-on-b-bbr",
        ),
        pytest.param(
            Topology.default(lines=1, ipv6=False, congestion_control="reno"), id="one-line-ipv4-reno"
        ),
    ],
)
def test_the_network_is_what_was_asked_for(topology: Topology, run_id: str, base: Path) -> None:
    """Rates, loss, NAT, the station's side and the congestion control are as asked."""
    with Network.create(topology, run_id, base) as network:
        network.start_switches()
        report = network.check().as_dict()
        assert {tuple(seen) for seen in report["congestion_control"].values()} == {
            (topology.congestion_control,)
        }
        ports = network.switches.ports(topology.station_side)
        assert f"{topology.station_side.lower()}-station" in ports


def test_delay_without_netem_is_refused(run_id: str, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel cannot delay, a topology that asks for it is refused before anything is made."""
    monkeypatch.setattr(tools, "has_netem", lambda: False)
    with pytest.raises(MissingRequirementError, match=r"delay_ms.*netem.*delay_ms = 0"):
        Network.create(Topology.default(delay_ms=5), run_id, base)
    assert not (base / run_id).exists()


def test_unknown_congestion_control_is_refused(run_id: str, base: Path) -> None:
    """A congestion control that the kernel lacks is named with those it has."""
    with pytest.raises(MissingRequirementError, match=r"'nosuch'.*cubic"):
        Network.create(Topology.default(congestion_control="nosuch"), run_id, base)


def test_a_wire_with_delay_goes_through_its_middle() -> None:
    """With delay, frames take the delaying pair between the ends; loss is drawn once, where they enter."""
    rules = line.wire_rules(LineSpec(name="line1", delay_ms=5, loss=0.01))
    hops = [row.split('"')[1] for row in rules.splitlines() if "dup to" in row]
    assert hops == ["delay-a", "delay-b", "to-a", "to-b"]
    assert rules.count("numgen random mod 1000000 < 10000 drop") == 2
