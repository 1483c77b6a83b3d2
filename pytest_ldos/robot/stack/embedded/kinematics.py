"""MuJoCo's model of the Panda, its kinematics and collision checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco import minimize

from pytest_ldos.robot.stack.goals import Pose, PoseError

Joints = npt.NDArray[np.float64]
"""Joint values in the order of `Panda.joint_names`; shape ``(7,)``, radians."""

BASE_LINK: Final = "panda_link0"
TIP_LINK: Final = "panda_link8"
GROUP: Final = "panda_arm"


@dataclass(frozen=True)
class Panda:
    """The compiled model.

    Attributes:
        model: MuJoCo's model; every user creates its own `MjData`.
        lower, upper: joint limits, rad.
        velocity_limit, acceleration_limit: rad/s and rad/s².
        ready: the home position.
        tip_site: MuJoCo's index of `panda_link8`.
    """

    model: mujoco.MjModel
    joint_names: tuple[str, ...]
    lower: Joints
    upper: Joints
    velocity_limit: Joints
    acceleration_limit: Joints
    ready: Joints
    tip_site: int

    def __len__(self) -> int:
        return len(self.joint_names)


def load_panda() -> Panda:
    """Compiles ``panda.xml``."""
    xml = files("pytest_ldos.robot.stack.embedded").joinpath("panda.xml").read_text("utf-8")
    model = mujoco.MjModel.from_xml_string(xml)
    return Panda(
        model=model,
        joint_names=tuple(model.joint(index).name for index in range(model.njnt)),
        lower=model.jnt_range[:, 0].copy(),
        upper=model.jnt_range[:, 1].copy(),
        velocity_limit=model.numeric("velocity_limit").data.copy(),
        acceleration_limit=model.numeric("acceleration_limit").data.copy(),
        ready=model.numeric("ready").data.copy(),
        tip_site=model.site(TIP_LINK).id,
    )


_ROTATION_WEIGHT: Final = 0.3
"""Metres equivalent to one radian: about the length of the arm's wrist."""

_POSITION_TOLERANCE_M: Final = 1e-4
_ROTATION_TOLERANCE_RAD: Final = 1e-3
_MOST_ITERATIONS: Final = 50

Vector = npt.NDArray[np.float64]


class Kinematics:
    """Computes the tip's pose from joints, and joints from the tip's pose."""

    def __init__(self, panda: Panda) -> None:
        self._panda = panda
        self._model = panda.model
        self._data = mujoco.MjData(panda.model)

    def forward(self, joints: Joints) -> Pose:
        """Pose of `panda_link8` in `panda_link0`."""
        self._place(joints)
        x, y, z = self._data.site_xpos[self._panda.tip_site].tolist()
        qw, qx, qy, qz = self._tip_quaternion().tolist()
        return Pose((x, y, z), (qx, qy, qz, qw))

    def is_colliding(self, joints: Joints | list[float]) -> bool:
        """Returns True if the arm touches itself, the floor or the obstacle."""
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_collision(self._model, self._data)
        return bool(self._data.ncon > 0)

    def inverse(self, pose: Pose, start: Joints, *, rng: np.random.Generator, attempts: int) -> Joints | None:
        """Returns joints that bring the tip to `pose` without a collision, or ``None``.

        The first attempt starts at `start`, so that it finds the nearest solution; the
        others start at random joints.

        Source: box-constrained Gauss-Newton of `mujoco.minimize`, with MuJoCo's Jacobians.
        """
        for first_guess in self._first_guesses(start, rng, attempts):
            joints = self._descend(pose, first_guess)
            if self._is_reached(pose, joints) and not self.is_colliding(joints):
                return joints
        return None

    def _first_guesses(self, start: Joints, rng: np.random.Generator, attempts: int) -> Iterator[Joints]:
        yield np.clip(start, self._panda.lower, self._panda.upper)
        for _ in range(attempts - 1):
            yield rng.uniform(self._panda.lower, self._panda.upper)

    def _descend(self, pose: Pose, first_guess: Joints) -> Joints:
        position = np.array(pose.position)
        quaternion = np.roll(np.array(pose.orientation), 1)
        solution, _ = minimize.least_squares(
            first_guess[:, None],
            lambda columns: np.stack([self._residual(position, quaternion, joints) for joints in columns.T], axis=1),
            [self._panda.lower[:, None], self._panda.upper[:, None]],
            jacobian=lambda column, _: self._jacobian(quaternion, column[:, 0]),
            max_iter=_MOST_ITERATIONS,
            verbose=minimize.Verbosity.SILENT,
        )
        return np.asarray(solution)[:, 0]

    def _is_reached(self, pose: Pose, joints: Joints) -> bool:
        error = PoseError.between(pose, self.forward(joints))
        return error.position_m <= _POSITION_TOLERANCE_M and error.rotation_rad <= _ROTATION_TOLERANCE_RAD

    def _residual(self, position: Vector, quaternion: Vector, joints: Joints) -> Vector:
        self._place(joints)
        rotation = np.empty(3)
        mujoco.mju_subQuat(rotation, quaternion, self._tip_quaternion())
        offset = position - self._data.site_xpos[self._panda.tip_site]
        return np.concatenate([offset, _ROTATION_WEIGHT * rotation])

    def _jacobian(self, quaternion: Vector, joints: Joints) -> Vector:
        self._place(joints)
        linear = np.empty((3, self._model.nv))
        angular = np.empty((3, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, linear, angular, self._panda.tip_site)
        by_goal = np.empty(9)
        by_tip = np.empty(9)
        mujoco.mjd_subQuat(quaternion, self._tip_quaternion(), by_goal, by_tip)
        in_tip_frame = self._data.site_xmat[self._panda.tip_site].reshape(3, 3).T @ angular
        return np.vstack([-linear, _ROTATION_WEIGHT * by_tip.reshape(3, 3) @ in_tip_frame])

    def _place(self, joints: Joints) -> None:
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)

    def _tip_quaternion(self) -> Vector:
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, self._data.site_xmat[self._panda.tip_site])
        return quaternion
