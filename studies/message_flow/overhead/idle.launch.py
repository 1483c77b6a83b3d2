"""No nodes: those of the overhead's chain are started by its stimulus, chain.py, traced and untraced."""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import ExecuteProcess


def generate_launch_description():
    return LaunchDescription([ExecuteProcess(cmd=["sleep", "infinity"])])
