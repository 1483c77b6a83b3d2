"""Callbacks: what calls them, and what they are called.

Tracepoints: ``rclcpp_callback_register``, ``rclcpp_subscription_callback_added``,
``rclcpp_subscription_init``, ``rclcpp_timer_callback_added``, ``rclcpp_service_callback_added``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_ldos.execution.columns import NEVER, IdArray, Values, frame_of, pick
from pytest_ldos.execution.endpoints import Endpoints, registry_of
from pytest_ldos.execution.model import Frames
from pytest_ldos.execution.observed import Events, Observed
from pytest_ldos.execution.registry import Registry, with_unknown
from pytest_ldos.execution.schema import ENTITIES
from pytest_ldos.execution.symbols import demangle
from pytest_ldos.tracepoints import Ros2


@dataclass(frozen=True)
class Callbacks:
    """Callbacks in the order of their registration; owners are -1 where none is known."""

    registers: Events
    registry: Registry
    subscription: IdArray
    timer: IdArray
    service: IdArray

    def frames(self, endpoints: Endpoints) -> Frames:
        unknown = self.registry.unknown
        owners = {
            "subscription": with_unknown(self.subscription, unknown),
            "timer": with_unknown(self.timer, unknown),
            "service": with_unknown(self.service, unknown),
        }
        columns: dict[str, Values] = {
            "process": np.concatenate((self.registers.process, unknown.process)),
            "handle": np.concatenate((self.registers.handles("callback"), unknown.handle)),
            "born_ns": with_unknown(self.registers.times_ns, unknown, NEVER),
            "symbol": [*map(demangle, self.registers.texts("symbol")), *[None] * len(unknown)],
            "node": _nodes(owners, endpoints),
            "known": [True] * len(self.registers) + [False] * len(unknown),
        }
        return {"callbacks": frame_of(ENTITIES["callbacks"], columns | owners)}


def build_callbacks(observed: Observed, endpoints: Endpoints) -> Callbacks:
    """All registered callbacks with their owners."""
    registers = observed.events(Ros2.CALLBACK_REGISTER)
    registry = registry_of(registers, "callback")
    return Callbacks(
        registers,
        registry,
        subscription=_owners(registers, *_subscription_of(observed, endpoints)),
        timer=_owners(
            registers,
            *_owner_by_handle(observed, Ros2.TIMER_CALLBACK_ADDED, "timer_handle", endpoints.timers.registry),
        ),
        service=_owners(
            registers,
            *_owner_by_handle(observed, Ros2.SERVICE_CALLBACK_ADDED, "service_handle", endpoints.services.registry),
        ),
    )


def subscriptions_by_object(observed: Observed, endpoints: Endpoints) -> tuple[Registry, IdArray]:
    """Rclcpp's subscription objects, and the subscription each stands for.

    With intra-process communication a subscription has two: the second is announced after
    its callback was added, so both are found by the nearest announcement.
    """
    inits = observed.events(Ros2.RCLCPP_SUBSCRIPTION_INIT)
    owners = endpoints.subscriptions_by_rcl.find(inits.process, inits.handles("subscription_handle"), inits.times_ns)
    return registry_of(inits, "subscription"), owners


def _subscription_of(observed: Observed, endpoints: Endpoints) -> tuple[Events, IdArray]:
    added = observed.events(Ros2.SUBSCRIPTION_CALLBACK_ADDED)
    objects, owners = subscriptions_by_object(observed, endpoints)
    found = objects.find_nearest(added.process, added.handles("subscription"), added.times_ns)
    return added, pick(owners, found, -1)


def _owner_by_handle(observed: Observed, name: str, handle: str, registry: Registry) -> tuple[Events, IdArray]:
    added = observed.events(name)
    return added, registry.find(added.process, added.handles(handle), added.times_ns)


def _owners(registers: Events, added: Events, owner: IdArray) -> IdArray:
    """The owner that was announced nearest to each registration."""
    announced = registry_of(added, "callback")
    found = announced.find_nearest(registers.process, registers.handles("callback"), registers.times_ns)
    return pick(owner, found, -1)


def _nodes(owners: dict[str, IdArray], endpoints: Endpoints) -> IdArray:
    kinds = {"subscription": endpoints.subscriptions, "timer": endpoints.timers, "service": endpoints.services}
    node = np.full(len(owners["timer"]), -1, dtype=np.int32)
    for name, kind in kinds.items():
        of_kind = np.asarray(kind.columns["node"], dtype=np.int32)
        owner = np.where(owners[name] < len(of_kind), owners[name], -1)
        node = np.where(node >= 0, node, pick(of_kind, owner, -1))
    return node
