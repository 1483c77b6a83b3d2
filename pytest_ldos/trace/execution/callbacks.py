"""Callbacks with their owners and symbols.

Tracepoints: ``rclcpp_callback_register``, ``rclcpp_subscription_callback_added``,
``rclcpp_subscription_init``, ``rclcpp_timer_callback_added``, ``rclcpp_service_callback_added``.
"""

from __future__ import annotations

import numpy as np

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import IdArray, pick
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, registry_of
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.registry import Registry
from pytest_ldos.trace.execution.symbols import demangle


def build_callbacks(observed: Observed, endpoints: Endpoints) -> Kind:
    """All registered callbacks with their owners, in the order of their registration."""
    registers = observed.events(Ros2.CALLBACK_REGISTER)
    timers = _owner_by_handle(observed, Ros2.TIMER_CALLBACK_ADDED, "timer_handle", endpoints.timers.registry)
    services = _owner_by_handle(observed, Ros2.SERVICE_CALLBACK_ADDED, "service_handle", endpoints.services.registry)
    owners = {
        "subscription": _owners(registers, *_subscription_of(observed, endpoints)),
        "timer": _owners(registers, *timers),
        "service": _owners(registers, *services),
    }
    symbols = [demangle(symbol) for symbol in registers.texts("symbol")]
    columns = {"symbol": symbols, "node": _nodes(owners, endpoints), **owners}
    return Kind("callbacks", registers, "callback", registry_of(registers, "callback"), columns)


def subscriptions_by_object(observed: Observed, endpoints: Endpoints) -> tuple[Registry, IdArray]:
    """Subscription objects of rclcpp, and the subscription that each represents.

    With intra-process communication a subscription has two objects. The second is announced after
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
    """The owner announced nearest in time to each registration."""
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
