"""The reference system with two executors, on one host and on two."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

HOSTS = {f"ldos-host-{number}": f"10.213.47.{number}/24" for number in (1, 2)}


@pytest.fixture
def two_hosts():
    """Two network namespaces with a cable between them; their names with a comma between them."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    made = []
    try:
        for name in HOSTS:
            ip("netns", "add", name)
            made.append(name)
        first, second = HOSTS
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in HOSTS.items():
            ip("-netns", name, "address", "add", address, "dev", "cable")
            for device in ("lo", "cable"):
                ip("-netns", name, "link", "set", device, "up")
        yield ",".join(HOSTS)
    finally:
        for name in made:
            ip("netns", "del", name)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def ldos_stack_spec(ldos_stack_spec, request, executor, hosts):
    arguments = {"executor": executor, "hosts": request.getfixturevalue("two_hosts") if hosts == 2 else ""}
    return replace(ldos_stack_spec, ros2=replace(ldos_stack_spec.ros2, launch_arguments=arguments))


@pytest.mark.parametrize(
    ("executor", "hosts"),
    [
        pytest.param("singlethreaded", 1, marks=pytest.mark.single),
        pytest.param("multithreaded", 1, marks=pytest.mark.multi),
        pytest.param("singlethreaded", 2, marks=pytest.mark.single_two_hosts),
        pytest.param("multithreaded", 2, marks=pytest.mark.multi_two_hosts),
    ],
)
def test_message_flow(executor, hosts, ldos_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(ldos_stack))
