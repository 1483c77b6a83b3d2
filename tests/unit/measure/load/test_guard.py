"""A guard over real DDS: late and silent paths; obedient, refusing and missing publishers."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.measure.load import flood_reports
from pytest_ldos.measure.load import guard as guard_load
from pytest_ldos.measure.load import protocol as programs
from pytest_ldos.measure.load.dds_flood import RunningFlood, run_dds_flood
from pytest_ldos.measure.load.guard import RunningGuard, guard_program, publishers_of, run_guard
from pytest_ldos.measure.load.guard_node import Guard, ThrottledPublisher
from pytest_ldos.measure.load.protocol import LoadSite, apply_loads, load_available, proof_to_dict
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.dds.endpoint import default
from pytest_ldos.robot.dds.node import Context, Node
from pytest_ldos.scenario.loads import DdsFloodSpec, GuardedTopic, GuardSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind
from tests.builders.stressors import is_gone, owner_of, wait_until
from tests.fakes.rig import FakeRecorder

PERIOD_S = 0.02
FLOOD = DdsFloodSpec(publishers=2, rate_hz=500, size_bytes=16)
QUICK = {"deadline_ms": 200.0, "calm_windows": 2, "increase": 0.5, "window_ms": 50.0, "least_share": 0.05}


class Arm:
    """Stands for a stack: sends `/tf` every 20 ms, with wall-clock stamps.

    Attributes:
        age_s: age of its messages; ``None`` for silence.
    """

    def __init__(self, domain: int) -> None:
        self.age_s: float | None = 0.0
        self._stopping = threading.Event()
        self._node = Node(Context(domain), "arm")
        self._publisher = self._node.create_publisher("tf2_msgs/msg/TFMessage", "/tf")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            if self.age_s is not None:
                self._publisher.publish(self._message(time.time() - self.age_s))

    def _message(self, stamp_s: float) -> object:
        stamp = default("builtin_interfaces/msg/Time", sec=int(stamp_s), nanosec=int(stamp_s % 1 * 1e9))
        header = default("std_msgs/msg/Header", stamp=stamp)
        transform = default("geometry_msgs/msg/TransformStamped", header=header)
        return default("tf2_msgs/msg/TFMessage", transforms=[transform])

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@pytest.fixture
def site(tmp_path) -> Iterator[LoadSite]:
    with claim_domain() as domain:
        yield LoadSite(domain=domain, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)


@pytest.fixture
def arm(site) -> Iterator[Arm]:
    arm = Arm(site.domain)
    yield arm
    arm.stop()


def processes(name: str) -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if each.name().startswith(name)]


@contextmanager
def guarded_flood(
    site: LoadSite, flood: DdsFloodSpec = FLOOD, **settings
) -> Iterator[tuple[RunningGuard, RunningFlood]]:
    with apply_loads([flood, GuardSpec(**{**QUICK, **settings})], site) as (guard, running):
        assert isinstance(guard, RunningGuard)
        assert isinstance(running, RunningFlood)
        yield guard, running


def rate_from_now(flood: RunningFlood, of: str = "rate_hz") -> float:
    """Number of messages that it sends, or that `of` names, in the next second."""
    began = flood.proof
    wait_until(lambda: flood.proof.seconds > began.seconds + 1)
    since = flood.proof
    messages = getattr(since, of) * since.seconds - getattr(began, of) * began.seconds
    return messages / (since.seconds - began.seconds)


@pytest.mark.measures_time
def test_late_path_throttles_the_flood_without_shortfall(site, arm):
    with guarded_flood(site) as (guard, flood):
        wait_until(lambda: guard.proof.obedient == 2)
        assert guard.proof.decreases == 0
        arm.age_s = 0.5
        wait_until(lambda: guard.proof.least == 0.05)
        wait_until(lambda: flood.proof.allowed_hz < 800)
        late = guard.proof
        arm.age_s = 0.0
        wait_until(lambda: guard.proof.increases >= 2)
    proof, sent = guard.proof, flood.proof
    assert (proof.shortfall, sent.shortfall, proof.missing) == ("", "", ())
    assert late.late > 0
    assert proof.share < 1
    assert proof.throttled_s > 0.2
    assert sent.rate_hz == pytest.approx(sent.allowed_hz, rel=0.1)
    assert f"throttled to {sent.allowed_hz:.0f}" in sent.describe()
    assert "throttled 2 publishers for" in proof.describe()
    assert proof_to_dict(proof)["shares"] == proof.shares
    assert processes("guard") == processes("flood_") == []


@pytest.mark.acceptance
def test_silent_path_is_late(site, arm):
    with guarded_flood(site) as (guard, _):
        wait_until(lambda: guard.proof.obedient == 2)
        arm.age_s = None
        wait_until(lambda: guard.proof.least == 0.05)
    assert guard.proof.silent_windows >= 5
    assert guard.proof.shortfall == ""
    assert "silent windows" in guard.proof.describe()


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_guard_releases_publishers_at_its_end(site, arm):
    arm.age_s = 0.5
    together = dataclasses.replace(site, loads=[FLOOD])
    with run_dds_flood(FLOOD, site) as flood:
        with run_guard(GuardSpec(**QUICK), together) as guard:
            wait_until(lambda: guard.proof.least == 0.05 and guard.proof.throttled_s > 0.5)
        assert flood.proof.allowed_hz < 900
        assert rate_from_now(flood) == pytest.approx(1000, rel=0.1)


@pytest.mark.acceptance
def test_missing_publisher_is_reported_and_the_guard_continues(site, arm):
    arm.age_s = 0.5
    with guarded_flood(site, publishers="/flood_publisher_1,/nobody") as (guard, _):
        wait_until(lambda: guard.proof.least == 0.05 and guard.proof.obedient)
    proof = guard.proof
    assert (proof.obedient, proof.missing, proof.shortfall) == (1, ("/nobody: no such node",), "")
    assert "not obeyed by /nobody: no such node" in proof.describe()


@pytest.mark.acceptance
def test_reliable_flood_refuses(site, arm):
    reliable = dataclasses.replace(FLOOD, reliability="reliable", depth=50)
    with guarded_flood(site, reliable) as (guard, flood):
        wait_until(lambda: "reliable publisher is not throttled" in guard.proof.shortfall)
        arm.age_s = 0.5
        wait_until(lambda: guard.proof.least == 0.05)
        assert flood.proof.allowed_hz == 1000
    assert guard.proof.shortfall.startswith("no publisher obeyed the guard (/flood_publisher_")


@pytest.mark.acceptance
def test_unknown_parameter_is_refused(site, arm):
    with guarded_flood(site, parameter="brake") as (guard, _):
        wait_until(lambda: "parameter 'brake' is not declared" in guard.proof.shortfall)


@pytest.mark.acceptance
def test_hanging_publisher_is_reported(site, arm):
    with guarded_flood(site, dataclasses.replace(FLOOD, publishers=1)) as (guard, _):
        wait_until(lambda: guard.proof.obedient == 1)
        publisher = processes("flood_publisher")[0]
        publisher.send_signal(signal.SIGSTOP)
        arm.age_s = 0.5
        last = guard._stream
        wait_until(lambda: last.last and last.last.missing == ("/flood_publisher_1: does not answer",))
        publisher.send_signal(signal.SIGCONT)
        wait_until(lambda: last.last and not last.last.missing)


def test_killed_guard_is_a_shortfall(site, arm):
    with guarded_flood(site) as (guard, _):
        processes("guard")[0].kill()
        wait_until(lambda: "SIGKILL" in guard.proof.shortfall)
    assert guard.proof.shortfall.startswith("guard ")


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_hanging_guard_is_a_shortfall(site, arm, monkeypatch):
    monkeypatch.setattr(flood_reports, "_LONGEST_SILENCE_S", 0.5)
    with guarded_flood(site) as (guard, _):
        process = processes("guard")[0]
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "guard has printed nothing" in guard.proof.shortfall)
        process.send_signal(signal.SIGCONT)


def test_path_without_messages_is_an_error(site, arm, monkeypatch):
    arm.age_s = None
    monkeypatch.setattr(guard_load, "_HEARING_TIMEOUT_S", 1.0)
    silent = pytest.raises(LoadFailed, match="heard nothing on /tf within 1 s")
    with silent, run_guard(GuardSpec(least_share=1), site):
        pass
    assert processes("guard") == []


def test_failed_start_has_a_reason(site, monkeypatch):
    monkeypatch.setattr("pytest_ldos.measure.load.guard._MODULE", "pytest_ldos.no_such_room")
    with (
        pytest.raises(LoadFailed, match="guard ended with exit code 1") as caught,
        run_guard(GuardSpec(least_share=1), site),
    ):
        pass
    assert "no_such_room" in str(caught.value)


@pytest.mark.acceptance
def test_guard_ends_with_its_owner_and_releases_publishers(site, arm):
    arm.age_s = 0.5
    together = dataclasses.replace(site, loads=[FLOOD])
    with run_dds_flood(FLOOD, site) as flood:
        with owner_of(run_guard(GuardSpec(**QUICK), together)) as owner:
            wait_until(lambda: flood.proof.allowed_hz < 700)
            (guard,) = psutil.Process(owner).children(recursive=True)
            os.kill(owner, signal.SIGKILL)
            wait_until(lambda: is_gone(guard.pid))
        wait_until(lambda: rate_from_now(flood, "allowed_hz") > 800)


class SlowSetter:
    """A publisher that obeys at once; its answers wait in a list."""

    def __init__(self) -> None:
        self.share = 1.0
        self.answers: list[Callable[[list[str]], None]] = []

    def server_is_ready(self) -> bool:
        return True

    def set(self, values, on_done) -> None:
        (self.share,) = values.values()
        self.answers.append(on_done)


def test_publisher_is_not_released_before_a_pending_answer():
    """Its last confirmed share is the whole, but it obeys a smaller one already."""
    setter = SlowSetter()
    publisher = ThrottledPublisher(setter, "/camera", "share")
    publisher.ask(1.0, 0)
    setter.answers.pop()([])
    assert publisher.is_settled(1.0)
    publisher.ask(0.5, 1)
    assert not publisher.is_settled(1.0)
    setter.answers.pop()([])
    publisher.ask(1.0, 2)
    assert (setter.share, publisher.is_settled(1.0)) == (1.0, False)
    setter.answers.pop()([])
    assert publisher.is_settled(1.0)


def test_windows_that_end_during_the_release_throttle_nothing():
    """They are late, and the executor that waits for the publishers' answers ends them as well."""
    setter = SlowSetter()
    limits = {"late_share": 0.1, "least_share": 0.05, "decrease": 0.5, "calm_windows": 2, "increase": 0.1}
    path = {"deadline_ms": 10, "silence_ms": 100, "publishers": ["/camera"], "parameter": "share"}
    guard = Guard({**limits, **path}, stamp_of=lambda stamp_ns: stamp_ns, setter_of=lambda _: setter)

    def end_late_window() -> None:
        guard.on_message(time.time_ns() - NS_PER_S)
        guard.end_window()

    def answer_and_end_late_window() -> None:
        setter.answers.pop()([])
        end_late_window()

    end_late_window()
    assert setter.share == 0.5
    guard.release(answer_and_end_late_window)
    assert (setter.share, setter.answers) == (1.0, [])


# --- guarded publishers and paths -----------------------------------------------------------------------


def test_without_a_flood_publishers_must_be_named(site):
    with pytest.raises(ConfigurationError, match="no publisher to throttle") as caught:
        publishers_of(GuardSpec(), site)
    assert 'publishers = "/camera,/lidar"' in caught.value.remedy
    assert publishers_of(GuardSpec(least_share=1), site) == ()
    assert publishers_of(GuardSpec(publishers="/camera, /lidar"), site) == ("/camera", "/lidar")


def test_flood_at_the_site_is_throttled(site):
    other_site = dataclasses.replace(site, loads=[GuardSpec(), DdsFloodSpec(publishers=5, participants=2)])
    assert publishers_of(GuardSpec(), other_site) == ("/flood_publisher_1", "/flood_publisher_2")
    elsewhere = dataclasses.replace(site, loads=[DdsFloodSpec(domain="other")])
    with pytest.raises(ConfigurationError, match="another DDS domain"):
        publishers_of(GuardSpec(), elsewhere)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"path": "state feedbck"}, "unknown path of the guard: 'state feedbck'"),
        ({"path": "planning"}, "phases of a goal"),
        ({"path": "own"}, "has no deadline"),
        ({"path": "own", "deadline_ms": 5}, "type of /cmd is not known"),
        ({"path": "own", "deadline_ms": 5, "type": "std_msgs/msg/String"}, "carry no header.stamp"),
        ({"topic": "/chatter", "deadline_ms": 5, "type": "no_msgs/msg/Such"}, "are not known here"),
    ],
)
def test_unsuitable_paths_are_refused_before_the_start(site, settings, reason):
    own = PathSpec(name="own", via=("/joint_states", "/cmd"))
    known = dataclasses.replace(site, paths=(*site.paths, own), loads=[FLOOD])
    with pytest.raises(ConfigurationError, match=reason), run_guard(GuardSpec(**settings), known):
        pass
    assert processes("guard") == []


# --- on ROS 2 ------------------------------------------------------------------------------

TF = GuardedTopic("/tf", "tf2_msgs/msg/TFMessage", 10.0)


def test_ros_stack_is_guarded_over_its_middleware(site):
    other_site = dataclasses.replace(site, kind=StackKind.ROS2, environment={"ROS_DOMAIN_ID": "7"})
    command, environment = guard_program(GuardSpec(late_share=0.2), TF, ["/flood_publisher_1"], other_site)
    assert environment == {"ROS_DOMAIN_ID": "7"}
    assert command[2] == "pytest_ldos.measure.load.ros_node"
    given = json.loads(command[3])
    assert (given["program"], given["name"], given["publishers"]) == ("guard", "guard", ["/flood_publisher_1"])
    assert (given["late_share"], given["deadline_ms"], given["topic"]) == (0.2, 10.0, "/tf")


def test_embedded_guard_needs_the_embedded_packages(monkeypatch):
    embedded = StackSpec(kind=StackKind.EMBEDDED)
    assert load_available(GuardSpec(), embedded).ok
    monkeypatch.setattr(programs, "_EMBEDDED_PARTS", ("no_such_dds",))
    assert "pip install 'pytest-ldos[embedded]'" in load_available(GuardSpec(), embedded).remedy
