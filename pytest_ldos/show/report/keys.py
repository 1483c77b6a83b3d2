"""Words for the key of baselines."""

from __future__ import annotations

from pytest_ldos.judge.baseline.key import BaselineKey


def describe_key(key: BaselineKey, on: str = "on host class") -> str:
    return f"scenario '{key.scenario}' of the {key.stack} stack {on} {key.host_class}"


def describe_host(key: BaselineKey) -> str:
    """Words for a host class among others."""
    return f"{key.host_class} ({key.stack})"


def describe_place(key: BaselineKey) -> str:
    """Heading of the scenarios that were measured in one place."""
    return f"stack {key.stack}, host class {key.host_class}"
