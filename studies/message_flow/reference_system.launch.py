"""The reference system in the eleven processes of the published experiment, on one host or split over two.

`executor` is that of the process with PointCloudFusion, RayGroundFilter and VoxelGridDownsampler; `hosts` are two
network namespaces with a comma between them, or empty.
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

PROCESSES = {"1": "abcd", "2": "abcdefg"}
ACROSS_HOSTS = {"LD_PRELOAD": "", "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}  # packets between hosts are not dropped


def nodes(context):
    executor, hosts = (context.launch_configurations[name] for name in ("executor", "hosts"))
    places = dict(zip(PROCESSES, hosts.split(","), strict=True)) if hosts else {}
    for host, letters in PROCESSES.items():
        for process in (host + letter for letter in letters):
            program = f"autoware_default_{executor if process == '1b' else 'singlethreaded'}_{process}"
            yield Node(
                package="autoware_reference_system",
                executable=program,
                exec_name=program,
                prefix=f"nsenter --net=/run/netns/{places[host]}" if places else None,
                additional_env=ACROSS_HOSTS if places else None,
            )


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument("executor", default_value="singlethreaded"),
            DeclareLaunchArgument("hosts", default_value=""),
            OpaqueFunction(function=lambda context: list(nodes(context))),
        ]
    )
