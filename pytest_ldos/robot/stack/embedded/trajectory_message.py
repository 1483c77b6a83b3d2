"""Conversion of timed paths to `trajectory_msgs/JointTrajectory`, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_ldos.base.units import NS_PER_S, seconds_to_ns
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.stack.embedded.timed_path import TimedPath


def to_message(path: TimedPath, joint_names: Sequence[str]) -> Message:
    """Builds a `JointTrajectory` from a path."""
    points = [
        default(
            "trajectory_msgs/msg/JointTrajectoryPoint",
            positions=path.positions[index],
            velocities=path.velocities[index],
            accelerations=path.accelerations[index],
            time_from_start=_to_duration(float(time_s)),
        )
        for index, time_s in enumerate(path.times_s)
    ]
    return default("trajectory_msgs/msg/JointTrajectory", joint_names=list(joint_names), points=points)


def from_message(trajectory: Message) -> TimedPath:
    """Returns the path of a `JointTrajectory` whose points all have velocities and accelerations.

    Raises:
        ValueError: there are too few points, or they are out of order or incomplete.
    """
    points = trajectory.points
    times = np.array([duration_ns(point.time_from_start) for point in points]) / NS_PER_S
    if len(points) < 2 or np.any(np.diff(times) <= 0):
        raise ValueError("a trajectory needs two or more points in order of time")
    joints = len(trajectory.joint_names)
    if any(len(getattr(point, name)) != joints for point in points for name in _POINT_FIELDS):
        raise ValueError("every point needs a position, velocity and acceleration of every joint")
    return TimedPath(times, *(np.array([getattr(point, name) for point in points]) for name in _POINT_FIELDS))


_POINT_FIELDS = ("positions", "velocities", "accelerations")


def duration_ns(duration: Message) -> int:
    """Returns the nanoseconds of a `builtin_interfaces/Duration`."""
    return int(duration.sec) * NS_PER_S + int(duration.nanosec)


def _to_duration(time_s: float) -> Any:
    seconds, nanoseconds = divmod(seconds_to_ns(time_s), NS_PER_S)
    return default("builtin_interfaces/msg/Duration", sec=seconds, nanosec=nanoseconds)
