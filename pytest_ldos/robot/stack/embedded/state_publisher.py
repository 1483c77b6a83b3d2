"""robot_state_publisher: publishes `/tf` from `/joint_states` by the model's kinematics."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import mujoco

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.kinematics import BASE_LINK, load_panda
from pytest_ldos.robot.stack.embedded.planted import CpuWaste
from pytest_ldos.robot.stack.embedded.timed_path import duration_ns

PUBLISH_PERIOD_NS: Final = 50 * NS_PER_MS
"""Period of `/tf`: `publish_frequency` of robot_state_publisher is 20 Hz."""


class StatePublisher:
    """Publishes the pose of every moving link relative to its parent, at most 20 times per second.

    Args:
        delay_s: a planted fault: delay of each publication.
        cpu_waste: a planted fault, see `CpuWaste`.
    """

    def __init__(self, node: Node, *, delay_s: float = 0.0, cpu_waste: float = 0.0) -> None:
        self._delay_s = delay_s
        self._waste = CpuWaste(cpu_waste)
        self._model = load_panda().model
        self._data = mujoco.MjData(self._model)
        base = self._model.body(BASE_LINK).id
        self._links = range(base + 1, self._model.nbody)
        self._published_ns = -PUBLISH_PERIOD_NS
        self._tf = node.create_publisher("tf2_msgs/msg/TFMessage", "/tf")
        node.create_subscription("sensor_msgs/msg/JointState", "/joint_states", self.on_joint_state)

    def on_joint_state(self, state: Message) -> None:
        self._waste.waste()
        stamp_ns = duration_ns(state.header.stamp)
        if stamp_ns - self._published_ns < PUBLISH_PERIOD_NS:
            return
        self._published_ns = stamp_ns
        self._data.qpos[:] = state.position
        mujoco.mj_kinematics(self._model, self._data)
        transforms = [self._transform(state.header.stamp, body) for body in self._links]
        if self._delay_s:
            time.sleep(self._delay_s)
        self._tf.publish(default("tf2_msgs/msg/TFMessage", transforms=transforms))

    def _transform(self, stamp: Message, body: int) -> Any:
        parent = self._model.body_parentid[body]
        rotation = self._data.xmat[parent].reshape(3, 3)
        x, y, z = (rotation.T @ (self._data.xpos[body] - self._data.xpos[parent])).tolist()
        qw, qx, qy, qz = self._relative_quaternion(parent, body)
        return default(
            "geometry_msgs/msg/TransformStamped",
            header=default("std_msgs/msg/Header", stamp=stamp, frame_id=self._model.body(parent).name),
            child_frame_id=self._model.body(body).name,
            transform=default(
                "geometry_msgs/msg/Transform",
                translation=default("geometry_msgs/msg/Vector3", x=x, y=y, z=z),
                rotation=default("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
            ),
        )

    def _relative_quaternion(self, parent: int, body: int) -> list[float]:
        inverse = self._data.xquat[parent].copy()
        mujoco.mju_negQuat(inverse, inverse)
        result = inverse.copy()
        mujoco.mju_mulQuat(result, inverse, self._data.xquat[body])
        return list(result.tolist())


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `robot_state_publisher`; parameters: ``callback_delay_ms``, ``cpu_waste`` (faults to plant)."""
    delay_s = parameters["callback_delay_ms"] / 1000
    StatePublisher(Node(context, "robot_state_publisher"), delay_s=delay_s, cpu_waste=parameters.get("cpu_waste", 0.0))
    return lambda: None


if __name__ == "__main__":
    run_node("robot_state_pub", build)
