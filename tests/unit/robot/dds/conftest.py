"""A node on a separate domain, spun in a thread, with all its tracepoints."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pytest_ldos.robot.dds import action, emission, node
from pytest_ldos.robot.dds import node as executor
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.dds.node import Context


class Emitted:
    """Collects events with their threads, in order of emission."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple]] = []

    def __getattr__(self, name: str):
        return lambda *arguments: self.events.append((name, arguments))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def without_idling(self) -> list[str]:
        idle = {"rclcpp_executor_get_next_ready", "rclcpp_executor_wait_for_work"}
        return [name for name in self.names() if name not in idle]


@pytest.fixture
def emitted(monkeypatch) -> Emitted:
    recorder = Emitted()
    for module in (emission, node, executor, action):
        monkeypatch.setattr(module, "emit", recorder)
    return recorder


@pytest.fixture
def context(emitted) -> Iterator[Context]:
    with claim_domain() as domain:
        yield Context(domain)


@pytest.fixture
def spinning(context) -> Iterator[Context]:
    """The context, spun in a thread until the end of the test."""
    thread = threading.Thread(target=context.executor.spin)
    thread.start()
    yield context
    context.executor.stop()
    thread.join()
