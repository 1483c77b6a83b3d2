"""MuJoCo's model of the Panda: names, limits, and the indices that other modules need."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import mujoco
import numpy as np
import numpy.typing as npt

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
