"""robot_state_publisher: publishes `/tf` from `/joint_states` by the model's kinematics."""

from __future__ import annotations

import time
from typing import Any, Final

import mujoco
import numpy as np

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.robot.dds.endpoint import Message, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.panda import BASE_LINK, duration_ns, load_panda

PUBLISH_PERIOD_NS: Final = 50 * NS_PER_MS
"""Period of `/tf`: `publish_frequency` of robot_state_publisher is 20 Hz."""


class CpuWaste:
    """A planted fault: its process uses more CPU time, by a share of what it uses otherwise; 0 wastes nothing."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._began_s = time.process_time()
        self._wasted_s = 0.0

    def waste(self) -> None:
        """Computes until the share of the CPU time used since the creation of this object is reached."""
        due_s = self._share * (time.process_time() - self._began_s - self._wasted_s) - self._wasted_s
        begin_s = time.thread_time()
        while time.thread_time() - begin_s < due_s:
            pass
        self._wasted_s += time.thread_time() - begin_s if due_s > 0 else 0.0


class StatePublisher:
    """Publishes the pose of every moving link relative to its parent, at most 20 times per second.

    Planted faults: a delay of each publication, and `CpuWaste`.
    """

    def __init__(self, node: Node, *, delay_s: float = 0.0, cpu_waste: float = 0.0) -> None:
        self._delay_s = delay_s
        self._waste = CpuWaste(cpu_waste)
        self._model = load_panda().model
        self._data = mujoco.MjData(self._model)
        self._links = range(self._model.body(BASE_LINK).id + 1, self._model.nbody)
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
        inverse, relative = self._data.xquat[parent].copy(), np.empty(4)
        mujoco.mju_negQuat(inverse, inverse)
        mujoco.mju_mulQuat(relative, inverse, self._data.xquat[body])
        qw, qx, qy, qz = relative.tolist()
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


def build(context: Context, parameters: dict[str, Any]) -> None:
    """Parameters: ``callback_delay_ms``, ``cpu_waste`` (faults to plant)."""
    delay_s = parameters["callback_delay_ms"] / 1000
    StatePublisher(Node(context, "robot_state_publisher"), delay_s=delay_s, cpu_waste=parameters.get("cpu_waste", 0.0))


if __name__ == "__main__":
    run_node("robot_state_pub", build)
