"""Isolates a stack from other nodes by environment variables, and removes shared memory left behind.

Peers and devices in the user's middleware settings (``CYCLONEDDS_URI``, Fast DDS profiles) are part of the measured
system and recorded. Without them, messages from other machines are ignored.

Fast DDS keeps segments, ports and their locks in ``/dev/shm`` under names that begin with
``fastrtps_`` (``sem.fastrtps_`` for semaphores), and frees them only on a regular exit.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.robot.dds.domain import deaf_to_other_devices
from pytest_ldos.robot.stack.ros2.installed import DDS_SETTINGS, ZENOH, ZenohRouter, rmw_of, zenoh_router
from pytest_ldos.scenario.model import Ros2Spec


@dataclass(frozen=True)
class Isolation:
    """An environment that isolates the processes of a stack.

    Attributes:
        environment: variables for each process, to be added to ours.
        router: running router if their middleware is Zenoh.
    """

    environment: Mapping[str, str]
    router: ZenohRouter | None = None


@contextmanager
def isolated(
    spec: Ros2Spec, *, domain: int, log_directory: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Isolation]:
    """Isolates a stack within the ``with`` block; starts a router if its middleware needs one.

    Args:
        environment: environment of its processes; ours by default.

    Raises:
        Unavailable: its middleware is not sourced.
        BringUpFailed: the router did not start.
    """
    variables = isolated_environment(spec, domain=domain, log_directory=log_directory, environment=environment)
    common = {**(environment or {}), **variables}
    if common["RMW_IMPLEMENTATION"] != ZENOH:
        yield Isolation(common)
        return
    with zenoh_router({**os.environ, **common}, log_directory=log_directory) as router:
        yield Isolation({**common, **router.environment}, router)


def isolated_environment(
    spec: Ros2Spec, *, domain: int, log_directory: Path, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Returns variables for every process of a stack, to be added to `environment` (ours by default).

    Gazebo has its own discovery, in which two servers in one partition disturb each other.
    """
    given = {**os.environ, **(environment or {})}
    is_users_choice = any(given.get(name) for name in DDS_SETTINGS)
    return {
        **({} if is_users_choice else deaf_to_other_devices(domain, environment)),
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_STATIC_PEERS": "",
        "ROS_LOG_DIR": str(log_directory / "ros"),
        "RMW_IMPLEMENTATION": rmw_of(spec, environment),
        "GZ_PARTITION": f"ldos-{secrets.token_hex(4)}",
        "GZ_IP": "127.0.0.1",
        # A discovery server would admit any node.
        "ROS_DISCOVERY_SERVER": "",
        "ROS_SUPER_CLIENT": "",
        # Standard output is reserved for messages between our own processes.
        "RCUTILS_LOGGING_USE_STDOUT": "0",
        "PYTHONUNBUFFERED": "1",
    }


SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - Linux's standard location

_OURS: Final = re.compile(r"(sem\.)?fast(rtps|dds)_")


class SharedMemory:
    """Records the files present before a stack starts, to recognise those that it leaves behind."""

    def __init__(self, directory: Path = SHARED_MEMORY) -> None:
        self._directory = directory
        self._before = set(self._files())

    def _files(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield from (file.name for file in self._directory.iterdir() if _OURS.match(file.name))

    def remove_left_behind(self) -> None:
        """Removes new files that no visible process maps or holds open."""
        new = set(self._files()) - self._before
        if not new:
            return
        used = _used_names(self._directory)
        for name in new - used:
            with contextlib.suppress(OSError):
                (self._directory / name).unlink()


def _used_names(directory: Path) -> set[str]:
    """Names of the files in a directory that some process maps or holds open."""
    prefix = f"{directory}/"
    return {target[len(prefix) :] for target in _used_paths() if target.startswith(prefix)}


def _used_paths() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text("utf-8", errors="replace").splitlines():
                yield line[line.find("/") :]
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    yield str(descriptor.readlink())
