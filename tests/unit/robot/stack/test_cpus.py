"""CPUs of a stack: what the settings name, what a machine has, and what every thread gets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.cpu import describe_cpus, kept_off, our_cpus, read_affinities, with_descendants
from pytest_ldos.robot.stack.cpus import EVERYWHERE, Placement, cpus_of, find_placement
from pytest_ldos.scenario.model import StackSpec
from tests.builders.machine import CPU

FIRST, *_, LAST = (*sorted(our_cpus()), max(our_cpus()))
needs_two_cpus = pytest.mark.skipif(FIRST == LAST, reason="one CPU cannot be distinguished from all")

PROGRAM = """
import subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
subprocess.Popen(["sleep", "600"])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start():
    """Starts processes with a second thread and a child each."""
    started = []

    def run() -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield run
    for process in started:
        os.killpg(process.pid, 9)
        process.communicate()


def isolating(root, cpus: str):
    (root / CPU).mkdir(parents=True)
    (root / CPU / "isolated").write_text(f"{cpus}\n")
    return root


def affinities(pid: int) -> list[frozenset[int]]:
    return list(read_affinities(with_descendants([pid])).values())


def test_without_the_setting_a_stack_may_use_all_cpus():
    assert find_placement(StackSpec()) == EVERYWHERE
    assert EVERYWHERE.describe() == ""
    assert EVERYWHERE.by_pid({1: "move_group"}) == {}
    assert cpus_of(StackSpec()) == our_cpus()
    ours = our_cpus()
    with kept_off(EVERYWHERE.whole) as others:
        assert others == frozenset()
        assert cpus_of(StackSpec()) == our_cpus() == ours


@pytest.mark.parametrize("cpus", [f"{LAST}", f"{LAST}-{LAST}", f"{LAST},{LAST}"])
def test_a_list_is_for_all_processes(cpus):
    placement = find_placement(StackSpec(cpus=cpus))
    assert placement == Placement({}, frozenset([LAST]))
    assert placement.describe() == str(LAST)
    assert cpus_of(StackSpec(cpus=cpus)) == {LAST}


@needs_two_cpus
def test_processes_without_cpus_of_their_own_have_the_rest():
    placement = find_placement(StackSpec(cpus=f"move_group={LAST} rest={FIRST}"))
    assert placement.by_pid({1: "move_group", 2: "simulator"}) == {1: {LAST}, 2: {FIRST}}
    assert placement.describe() == f"move_group={LAST} rest={FIRST}"
    assert placement.whole == {FIRST, LAST}


@needs_two_cpus
def test_without_a_rest_it_is_all_that_is_listed():
    placement = find_placement(StackSpec(cpus=f"move_group={LAST} simulator={FIRST}"))
    assert placement.by_pid({2: "state_publisher"}) == {2: {FIRST, LAST}}


def test_the_isolated_cpu_is_that_of_the_kernel(tmp_path):
    assert find_placement(StackSpec(cpus="isolated"), isolating(tmp_path, f"{LAST}")).rest == {LAST}


def test_isolated_without_any_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"isolates no CPU\n.*ISOLATED_CPUS in lab\.conf"):
        find_placement(StackSpec(cpus="isolated"), isolating(tmp_path, ""))


@needs_two_cpus
@pytest.mark.parametrize(
    ("cpus", "whose"),
    [
        ("isolated", "all processes"),
        (f"{FIRST},{LAST}", "all processes"),
        (f"simulator={FIRST},{LAST} rest={FIRST}", "simulator"),
        (f"simulator={FIRST} move_group={LAST}", "rest"),
    ],
)
def test_several_isolated_cpus_for_the_same_threads_are_refused(tmp_path, cpus, whose):
    both = describe_cpus({FIRST, LAST})
    with pytest.raises(ConfigurationError, match=rf"{both} for {whose}, and the kernel balances no load.*\n.*one CPU"):
        find_placement(StackSpec(cpus=cpus), isolating(tmp_path, both))
    one_each = StackSpec(cpus=f"simulator={FIRST} rest={LAST}")
    assert find_placement(one_each, tmp_path).whole == {FIRST, LAST}


@pytest.mark.parametrize("cpus", ["4000", f"{FIRST},4000", f"move_group=4000 rest={FIRST}"])
def test_missing_cpus_are_refused_with_those_there_are(cpus):
    before = our_cpus()
    with pytest.raises(ConfigurationError, match=rf"CPUs 4000 do not exist.*\n.*{describe_cpus(our_cpus())}"):
        find_placement(StackSpec(cpus=cpus))
    assert our_cpus() == before


@pytest.mark.parametrize("cpus", ["5-2", "move_group=5-2 rest=0"])
def test_a_list_of_nothing_is_refused(cpus):
    with pytest.raises(ConfigurationError, match="which names no CPU"):
        find_placement(StackSpec(cpus=cpus))


@needs_two_cpus
def test_every_thread_of_each_process_gets_its_cpus(start):
    planner, simulator = start(), start()
    Placement({"move_group": frozenset([LAST])}, frozenset([FIRST])).confine({planner: "move_group", simulator: "sim"})
    assert affinities(planner) == [{LAST}] * 3
    assert affinities(simulator) == [{FIRST}] * 3


def test_an_unknown_process_is_refused_with_the_nearest_name(start):
    placement = Placement({"move_grup": frozenset([LAST])}, frozenset([LAST]))
    with pytest.raises(ConfigurationError, match=r"unknown process .*'move_grup'\n.*did you mean 'move_group'"):
        placement.confine({start(): "move_group"})


@needs_two_cpus
def test_this_process_and_its_children_keep_off_the_cpus_of_the_stack(start):
    others = our_cpus() - {LAST}
    earlier = start()
    with kept_off(cpus_of(StackSpec(cpus=f"{LAST}"))) as kept:
        assert kept == others
        assert set(affinities(start())) == {others}
        assert {thread.name: cpus for thread, cpus in read_affinities([os.getpid()]).items() if cpus != others} == {}
    assert set(affinities(earlier)) == {our_cpus()}
    assert our_cpus() == others | {LAST}


def test_without_other_cpus_this_process_stays(start):
    ours = our_cpus()
    with kept_off(ours) as others:
        assert others == frozenset()
        assert set(affinities(start())) == {ours}
    assert our_cpus() == ours
