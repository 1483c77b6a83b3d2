"""The numeric field of a scenario that a search varies, with the spacing of its levels and the harsher direction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.level_scale import LevelScale, Spacing
from pytest_ldos.scenario.addresses import assign, canonical, known_addresses
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.model import ScenarioSpec

_LINEAR: Final = ("percent", "cpus", "workers", "reserved")
"""Last words of the names of fields with linearly spaced levels; others are spaced logarithmically."""

_LESS_IS_HARSHER: Final = frozenset({"stack.planning_time_s"})
"""Addresses of which a smaller value disturbs more, except those of loads."""

_HOW_MUCH_IS_MEASURED: Final = frozenset({"trials", "max_trials", "warmup", "success_rate"})
"""Fields that a search controls itself."""


class Harsher(StrEnum):
    """Values of ``--harsher``: the direction in which more trials break."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class VariedField:
    """A numeric field.

    Attributes:
        address: full address.
        spec: the scenario it belongs to; its other settings stay.
    """

    address: str
    spec: ScenarioSpec

    @classmethod
    def find(cls, address: str, spec: ScenarioSpec) -> VariedField:
        """Finds the field of an address.

        Raises:
            ConfigurationError: an unknown address (the nearest is named), or no number that can break the arm.
        """
        whole = canonical(address)
        if whole in _HOW_MUCH_IS_MEASURED:
            raise ConfigurationError(
                f"{whole} says how much is measured: nothing breaks by it",
                remedy="vary a load or a setting of the stack, such as dds_flood.rate",
            )
        default = known_addresses().get(whole)
        if isinstance(default, bool) or not isinstance(default, int | float):
            raise ConfigurationError(
                f"{whole} is no number: there is no level of it at which something breaks",
                remedy=f"try its values one by one: ldos sweep --over {whole}=…",
            )
        return cls(whole, spec)

    @property
    def is_whole(self) -> bool:
        """True if only whole numbers are possible."""
        return isinstance(known_addresses()[self.address], int)

    @property
    def _less_is_harsher(self) -> bool:
        owner, _, name = self.address.rpartition(".")
        return self.address in _LESS_IS_HARSHER or (owner in LOAD_SPECS and name in LOAD_SPECS[owner].LESS_IS_HARSHER)

    def at(self, level: float) -> ScenarioSpec:
        """The scenario at a level.

        Raises:
            ConfigurationError: the field cannot have this value.
        """
        return assign(self.spec, self.address, int(level) if self.is_whole else level)

    def scale(
        self, low: float, high: float, *, precision: float, spacing: Spacing | None, harsher: Harsher | None
    ) -> LevelScale:
        """The scale of levels between two ends, both of which must be valid for the field.

        Raises:
            ConfigurationError: see `LevelScale` and `at`.
        """
        counted = self.address.rpartition(".")[2].rpartition("_")[2] in _LINEAR or low <= 0
        less = self._less_is_harsher if harsher is None else harsher is Harsher.LOWER
        scale = LevelScale(
            low=low,
            high=high,
            spacing=spacing or (Spacing.LINEAR if counted else Spacing.LOG),
            precision=precision,
            is_whole=self.is_whole,
            is_falling=less,
        )
        for level in (low, high):
            self.at(level)
        return scale
