"""Checks of packages outside of ROS 2: the embedded stack's, and the program for CPU loads."""

from __future__ import annotations

from pytest_ldos.doctor.finding import Finding, error, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.robot.stack.embedded.backend import embedded_available


def check_embedded(machine: Machine) -> Finding:
    answer = embedded_available()
    if answer.ok:
        return ok("embedded stack", "installed")
    if machine.wants_embedded:
        return error("embedded stack", answer.reason, answer.remedy)
    return ok("embedded stack", f"{answer.reason}; not needed beside ROS 2")


def check_stress_ng(machine: Machine) -> Finding:
    done = machine.run(["stress-ng", "--version"])
    if done is None:
        return warning("stress-ng", "not installed: no load that it makes", "sudo apt-get install stress-ng")
    return ok("stress-ng", (done.stdout.strip().splitlines() or ["installed"])[0].removeprefix("stress-ng, "))
