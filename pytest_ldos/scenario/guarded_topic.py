"""Topic observed by a guard: the end of a path, with the deadline of its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads import GuardSpec

KNOWN_TYPES: Final[Mapping[str, str]] = {
    "/tf": "tf2_msgs/msg/TFMessage",
    "/joint_states": "sensor_msgs/msg/JointState",
}
"""Message types of the topics that every arm has."""


@dataclass(frozen=True)
class GuardedTopic:
    """See the module.

    Attributes:
        type: of its messages, which carry the time at which the path began.
    """

    topic: str
    type: str
    deadline_ms: float


def guarded_topic(spec: GuardSpec, paths: Sequence[PathSpec]) -> GuardedTopic:
    """Resolves the topic of a guard's spec.

    Args:
        paths: all known paths.

    Raises:
        ConfigurationError: the path is unknown (the nearest known one is named), ends at no topic or has no deadline,
            or the type of its messages is unknown.
    """
    topic, deadline_ms = (spec.topic, spec.deadline_ms) if spec.topic else _end_of(spec, paths)
    kind = spec.type or KNOWN_TYPES.get(topic, "")
    require(bool(kind), f"the type of {topic} is not known", remedy='say it: type = "sensor_msgs/msg/Imu"')
    return GuardedTopic(topic, kind, deadline_ms)


def _end_of(spec: GuardSpec, paths: Sequence[PathSpec]) -> tuple[str, float]:
    by_name = {path.name: path for path in paths}
    refuse_unknown([spec.path], by_name, "path of the guard:")
    path = by_name[spec.path]
    if path.of_phases:
        topics = [each.name for each in paths if not each.of_phases]
        raise ConfigurationError(
            f"path {path.name!r} leads through phases of a goal, whose times no message carries",
            remedy=f"guard a path that ends at a topic ({', '.join(topics) or 'declare one'}), or name a topic",
        )
    deadline_ms = spec.deadline_ms or path.deadline_ms or 0.0
    require(
        deadline_ms > 0,
        f"path {path.name!r} has no deadline",
        remedy="give it one (deadline_ms in [[tool.ldos.paths]]), or give the guard one",
    )
    return path.via[-1], deadline_ms
