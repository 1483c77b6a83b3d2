"""Clock offsets between hosts, from their messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.transport import Bound, ClockOffset, estimate_clock_offsets
from tests.builders.ros2 import Recording

S = 1_000_000_000


class Hosts:
    """Hosts that exchange messages of known latency."""

    def __init__(self, **skew_ns) -> None:
        self.recording = Recording(skew_ns=skew_ns)
        self.threads, self.ends = {}, {}
        for host in skew_ns:
            process = self.recording.process(1, host=host)
            node = process.node(f"/{host}")
            self.threads[host] = (process.thread(1), process.thread(2))
            for topic in (f"/{one}_{other}" for one in skew_ns for other in skew_ns if one != other):
                self.ends[host, topic] = node.publisher(topic), node.subscription(topic)

    def send(self, at, one, other, takes):
        topic = f"/{one}_{other}"
        message = self.threads[one][0].at(at - 2).publish(self.ends[one, topic][0])
        self.threads[other][1].at(at + takes).take(self.ends[other, topic][1], message)

    def flow(self):
        return build_flow(self.recording.model())

    def offsets(self):
        return estimate_clock_offsets(self.flow())


def test_true_offset_is_within_the_uncertainty():
    hosts = Hosts(arm=0, base=7 * S)
    for number, takes in enumerate((900, 300, 800)):
        hosts.send(S + 10_000 * number, "arm", "base", takes)
        hosts.send(S + 10_000 * number + 5000, "base", "arm", takes + 200)
    assert hosts.offsets() == {"arm": ClockOffset(0, 0, 0), "base": ClockOffset(-7 * S + 100, 400, 6)}


@settings(max_examples=12, deadline=None)
@given(
    st.integers(-10 * S, 10 * S),
    st.lists(st.tuples(st.booleans(), st.integers(1, 5 * S // 1000)), min_size=1, max_size=12),
)
def test_any_true_offset_is_within_the_uncertainty(skew_ns, sent):
    hosts = Hosts(arm=0, base=skew_ns)
    for number, (there, takes) in enumerate(sent):
        hosts.send(100 * S + number * S // 100, *(("arm", "base") if there else ("base", "arm")), takes)
    found = hosts.offsets()["base"]
    assert found.messages == len(sent)
    if len({there for there, _ in sent}) == 2:
        assert abs(found.offset_ns + skew_ns) <= found.uncertainty_ns
    else:
        assert found.uncertainty_ns is None
    flow = build_flow(shift_clocks(hosts.flow().model, {"base": found.offset_ns}))
    assert flow.transport["latency_ns"].min() >= 0


@pytest.mark.parametrize(
    ("one", "other", "offset", "bound"),
    [("arm", "base", -5 * S - 300, Bound.LEAST), ("base", "arm", -5 * S + 300, Bound.MOST)],
)
def test_messages_in_one_direction_bound_one_side(one, other, offset, bound):
    hosts = Hosts(arm=0, base=5 * S)
    hosts.send(10 * S, one, other, 500)
    hosts.send(11 * S, one, other, 300)
    assert hosts.offsets()["base"] == ClockOffset(offset, None, 2, bound)


def test_three_hosts_in_a_chain():
    """The first and the last exchange no messages; uncertainties add up."""
    hosts = Hosts(arm=0, base=2 * S, cloud=-3 * S)
    for one, other, takes in (("arm", "base", 100), ("base", "arm", 300), ("base", "cloud", 50), ("cloud", "base", 70)):
        hosts.send(10 * S, one, other, takes)
    found = hosts.offsets()
    assert found["base"] == ClockOffset(-2 * S + 100, 200, 2)
    assert found["cloud"] == ClockOffset(3 * S + 110, 260, 2)


def test_chain_with_a_one_sided_link_is_one_sided():
    hosts = Hosts(arm=0, base=0, cloud=0)
    for one, other in (("arm", "base"), ("base", "cloud"), ("cloud", "base")):
        hosts.send(10 * S, one, other, 100)
    found = hosts.offsets()
    assert [found[host].uncertainty_ns for host in ("arm", "base", "cloud")] == [0, None, None]
    assert found["cloud"] == ClockOffset(-100 - 100, None, 2, Bound.LEAST)  # 100 by each link


def test_opposite_bounds_in_a_chain_give_no_bound():
    hosts = Hosts(arm=0, base=0, cloud=0)
    for one, other in (("arm", "base"), ("cloud", "base")):
        hosts.send(10 * S, one, other, 100)
    assert hosts.offsets()["cloud"].bound is Bound.NONE


def test_host_without_messages_is_left_out():
    hosts = Hosts(arm=0, base=0, cloud=0)
    hosts.send(10 * S, "arm", "base", 100)
    assert set(hosts.offsets()) == {"arm", "base"}


def test_clock_drift_increases_the_uncertainty():
    """The host's clock is set back by 10 µs between two messages: no single offset fits both."""
    hosts = Hosts(arm=0, base=0)
    hosts.send(10 * S, "base", "arm", 1000)
    hosts.recording.skew_ns["base"] = -10_000
    hosts.send(11 * S, "arm", "base", 1000)
    found = hosts.offsets()["base"]
    assert (found.offset_ns, found.uncertainty_ns) == (5000, 4000)


def test_unset_clock():
    hosts = Hosts(arm=1_795_238_711 * S, base=0)
    for number in range(5):
        hosts.send(10 * S + number * 1000, "arm", "base", 500)
        hosts.send(10 * S + number * 1000 + 700, "base", "arm", 100)
    assert hosts.offsets()["base"] == ClockOffset(1_795_238_711 * S - 200, 300, 10)


def test_equal_times_of_different_hosts():
    """Threads belong to hosts: shifting them puts causes before their effects."""
    hosts = Hosts(arm=0, base=-9 * S)
    for number in range(5):
        hosts.send(10 * S + number * 1000, "arm", "base", 500)
        hosts.send(10 * S + number * 1000 + 700, "base", "arm", 100)
    flow = hosts.flow()
    assert flow.transport["latency_ns"].min() < 0
    offset = estimate_clock_offsets(flow)["base"].offset_ns
    moved = build_flow(shift_clocks(flow.model, {"base": offset}))
    assert moved.transport.select("publication", "take").equals(flow.transport.select("publication", "take"))
    assert set(moved.transport["latency_ns"]) == {300}
