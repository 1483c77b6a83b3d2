"""Progress of a measurement that nobody watches."""

from __future__ import annotations

from pytest_ldos.instruments.instrument import Progress


class Silence(Progress):
    """Shows nothing."""
