"""Messages made of a user's values by ROS 2's own functions."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError

PARAMETERS = {"node": "/arm", "new_parameters": [{"name": "gain", "value": {"type": 3, "double_value": 1.5}}]}


@pytest.fixture
def fill():
    """Fills a message with many fields; it needs ROS 2's own modules."""
    pytest.importorskip("rosidl_runtime_py", reason="no ROS 2 is sourced")
    msg = pytest.importorskip("rcl_interfaces.msg", reason="no ROS 2 is sourced")
    from pytest_ldos.robot.stack.ros2 import programs

    return lambda values: programs.fill(msg.ParameterEvent(), values, "reset")


def test_values_with_lists_of_messages_can_be_used_again(fill):
    """As the goal that an action's reset sends after each trial."""
    first, second = (fill(PARAMETERS) for _ in range(2))
    assert first == second
    assert second.new_parameters[0].value.double_value == 1.5
    assert PARAMETERS["new_parameters"] == [{"name": "gain", "value": {"type": 3, "double_value": 1.5}}]


def test_unknown_field_names_the_nearest(fill):
    with pytest.raises(ConfigurationError, match="ParameterEvent has no field 'nod'") as refused:
        fill({"nod": "/arm"})
    assert "node" in refused.value.remedy
