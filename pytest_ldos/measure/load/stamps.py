"""The time stamp in a message: the time at which its path began."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.units import NS_PER_S

if TYPE_CHECKING:
    from pytest_ldos.robot.dds.messages import Message

_TRANSFORMS: Final = "tf2_msgs/msg/TFMessage"
_HEADER: Final = "std_msgs/msg/Header"


def stamp_reader(ros_type: str) -> Callable[[Message], int | None]:
    """Returns a reader of a type's stamp, ns: the header's or the first transform's; a stamp of 0 gives ``None``.

    Raises:
        ConfigurationError: the type is not known here, or its messages have no stamp.
    """
    if ros_type == _TRANSFORMS:
        return _first_transform_ns
    from pytest_ldos.robot.dds.messages import fields_of  # noqa: PLC0415 - its library comes with the extra `embedded`

    try:
        fields = fields_of(ros_type)
    except KeyError:
        raise ConfigurationError(
            f"messages of type {ros_type} are not known here", remedy="name a topic whose type ROS 2 itself defines"
        ) from None
    if not any(name == "header" and detail[1] == _HEADER for name, detail in fields):
        raise ConfigurationError(
            f"messages of type {ros_type} carry no header.stamp, which tells when a path began",
            remedy="guard a path that ends at a topic with a header, such as /tf or /joint_states",
        )
    return _header_ns


def _header_ns(message: Message) -> int | None:
    return _ns(message.header.stamp)


def _first_transform_ns(message: Message) -> int | None:
    return _ns(message.transforms[0].header.stamp) if message.transforms else None


def _ns(stamp: Message) -> int | None:
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec) or None
