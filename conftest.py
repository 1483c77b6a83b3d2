"""The stack under test, as a user's own `conftest.py` names it: the Panda."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ldos import api


@pytest.fixture
def ldos_stack_spec(ldos_stack_spec: api.StackSpec) -> api.StackSpec:
    """The stack that `[tool.ldos.stack]` and `--ldos-stack` describe, by default a Panda.

    To measure a robot of your own, return another: ``api.StackSpec(ros2=api.Ros2Spec(launch_file=…))``.
    """
    return ldos_stack_spec
