"""The backend for stacks of ROS 2 nodes: runs a launch file, recorded from its first moment."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pytest_ldos.host.cpu_thief import thief_commands
from pytest_ldos.host.kept import KeptTree
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.stack.installation import OURS, Installation
from pytest_ldos.robot.stack.ros2.faults import demand_plantable, fault_arguments
from pytest_ldos.robot.stack.ros2.installed import ros2_available, ros2_info
from pytest_ldos.robot.stack.ros2.isolation import isolated
from pytest_ldos.robot.stack.ros2.launch_file import find_launch_file, launch_arguments
from pytest_ldos.robot.stack.ros2.readiness_watch import ReadinessWatch
from pytest_ldos.robot.stack.ros2.running import Ros2Stack
from pytest_ldos.robot.stack.ros2.shared_memory import SharedMemory
from pytest_ldos.robot.stack.ros2.stimuli import plan_stimulus
from pytest_ldos.scenario.model import StackSpec

_LAUNCHER: Final = "pytest_ldos.robot.stack.ros2.launcher"


class Ros2Backend:
    """See `StackBackend`. `recorder` records all processes.

    The launch runs below a keeper, so that nothing it starts outlives this process,
    however this process ends (see `host.keeper`).
    """

    def __init__(
        self, spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
    ) -> None:
        self._spec = spec
        self._sourced = installation.environment
        self._launch_file = installation.launch_file or spec.ros2.launch_file
        self._recorder = recorder
        self._logs = log_directory.resolve()
        self._resources = ExitStack()

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> Ros2Stack:
        ros2_available(self._spec, self._sourced).demand()
        demand_plantable(self._spec)
        command = self._launch_command()
        plan = plan_stimulus(self._spec)
        domain = self._resources.enter_context(claim_domain())
        isolation = self._resources.enter_context(
            isolated(self._spec.ros2, domain=domain, log_directory=self._logs, environment=self._sourced)
        )
        recorded = {**isolation.environment, **self._recorder.environment}
        self._resources.callback(SharedMemory().remove_left_behind)
        tree = KeptTree("launch", command, log=self._logs / "launch.log", environment=recorded)
        self._resources.callback(tree.stop)
        group = ProcessGroup(
            log_directory=self._logs,
            prefix=self._recorder.prefix,
            environment=recorded,
            death_signal=signal.SIGINT,
        )
        self._resources.callback(group.stop)
        program = plan.command(self._logs, self._sourced)
        client = None if program is None else group.start(plan.name, program, talk=True)
        stack = Ros2Stack(
            self._spec,
            plan,
            isolation=isolation,
            tree=tree,
            client=client,
            group=group,
            log_directory=self._logs,
            info=ros2_info(self._spec, self._sourced),
        )
        self._resources.callback(stack.stop_listening)
        needs_clock = stack.info.has_simulated_clock
        watch = ReadinessWatch(
            self._spec, needs_clock=needs_clock, environment=isolation.environment, log_directory=self._logs
        )
        stack.await_ready(self._resources.enter_context(watch), on_waiting or _unheard)
        for name, thief in thief_commands(self._spec.faults.cpu_steal).items():
            group.start(name, thief)
        return stack

    def _launch_command(self) -> list[str]:
        ros2 = self._spec.ros2
        settings = {
            "file": str(find_launch_file(self._launch_file, self._sourced)),
            "arguments": {
                **launch_arguments(ros2, self._sourced),
                **fault_arguments(self._spec, self._logs, self._sourced),
            },
            "log_directory": str(self._logs),
        }
        return [*self._recorder.prefix, sys.executable, "-m", _LAUNCHER, json.dumps(settings)]

    def stop(self) -> None:
        self._resources.close()


def _unheard(_: str) -> None:
    """Ignores progress that nobody watches."""
