"""Self-checks of frozen values."""

from __future__ import annotations

from pytest_ldos.base.errors import ConfigurationError


def require(condition: bool, message: str, *, remedy: str = "") -> None:
    """Raises `ConfigurationError` unless `condition`."""
    if not condition:
        raise ConfigurationError(message, remedy=remedy)
