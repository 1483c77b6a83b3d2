"""Chooses a stack's backend; only this module knows all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from pytest_ldos.host.availability import Availability
from pytest_ldos.host.ros import find_distro
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.embedded.backend import (
    EmbeddedBackend,
    embedded_available,
    embedded_info,
    refuse_other_joints,
)
from pytest_ldos.robot.stack.goals import PANDA_GOALS, read_goals
from pytest_ldos.robot.stack.protocol import OURS, Installation, StackBackend, StackInfo
from pytest_ldos.robot.stack.ros2.backend import Ros2Backend
from pytest_ldos.robot.stack.ros2.installed import ros2_available, ros2_info
from pytest_ldos.robot.stack.ros2.stimuli import goals_of, plan_stimulus
from pytest_ldos.robot.stack.topology import TopologyBackend, topology_available, topology_info
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind


def resolve_kind(spec: StackSpec) -> StackKind:
    """Resolves `auto` to `ros2` for a user's launch file or if everything is installed, or else to `embedded`."""
    if spec.topology:
        return StackKind.EMBEDDED
    if spec.kind is not StackKind.AUTO:
        return spec.kind
    return StackKind.ROS2 if not spec.ros2.is_panda or ros2_available(spec).ok else StackKind.EMBEDDED


def demand_ros2(spec: StackSpec) -> StackSpec:
    """The same stack with `auto` resolved to `ros2`.

    Raises:
        Unavailable: the kind is `auto` or `ros2`, and no ROS 2 is sourced.
    """
    if spec.kind is StackKind.EMBEDDED:
        return spec
    distro = find_distro()
    is_sourced = distro is not None and distro.is_sourced
    remedy = "source ROS 2, or name the stack without one: --ldos-stack=embedded"
    Availability(is_sourced, "a ROS 2 workspace is to be built, and no ROS 2 is sourced", remedy).demand()
    return dataclasses.replace(spec, kind=StackKind.ROS2)


def choose_backend(
    spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
) -> StackBackend:
    """Returns the backend for a spec."""
    without_ros: Callable[..., StackBackend] = TopologyBackend if spec.topology else EmbeddedBackend
    chosen = Ros2Backend if resolve_kind(spec) is StackKind.ROS2 else without_ros
    return chosen(spec, recorder=recorder, log_directory=log_directory, installation=installation)


def stack_available(spec: StackSpec) -> Availability:
    """Availability of everything that `choose_backend` would start."""
    if resolve_kind(spec) is StackKind.ROS2:
        return ros2_available(spec)
    return topology_available() if spec.topology else embedded_available()


def describe_stack(spec: StackSpec) -> StackInfo:
    """Describes the stack that `choose_backend` would start."""
    if spec.topology:
        return topology_info(spec)
    return ros2_info(spec) if resolve_kind(spec) is StackKind.ROS2 else embedded_info(stimulus=spec.stimulus)


def require_goals(spec: StackSpec, name: str) -> None:
    """Reads the stack's goals and checks that a set of that name exists.

    Raises:
        ConfigurationError: their file is wrong, there is no such set, or they do not fit the robot.
    """
    if spec.topology or spec.stimulus is StimulusKind.WINDOW:
        return
    is_embedded = resolve_kind(spec) is StackKind.EMBEDDED
    if not spec.moves_arm:
        plan_stimulus(spec).book.cases(name)
        return
    book = (read_goals(Path(spec.goals)) if spec.goals else PANDA_GOALS) if is_embedded else goals_of(spec)
    for goal in (book.home, *book.goals(name)):
        if is_embedded:
            refuse_other_joints(goal)


def why_not_ros2(spec: StackSpec) -> str:
    """Returns why `auto` does not use the sourced ROS 2; empty if it does, or if none is sourced."""
    distro = find_distro()
    if distro is None or not distro.is_sourced or spec.kind is not StackKind.AUTO:
        return ""
    if resolve_kind(spec) is StackKind.ROS2:
        return ""
    return f"ROS 2 {distro.name} is sourced but not used: {ros2_available(spec).reason}"
