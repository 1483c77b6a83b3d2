"""Cells of a sweep (combinations of values of some settings), and the order of their measurement."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.cost import GUESS, Amount
from pytest_ldos.scenario.addresses import ALL_LOADS, assign, canonical, value_at
from pytest_ldos.scenario.model import ScenarioSpec

LARGEST_GRID: Final = 1000
"""Largest number of cells; a larger grid would take days and is refused."""

_SHUFFLES: Final = 200
_LONGEST_VALUE: Final = 40
_LONGEST_NAME: Final = 150
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Axis:
    """One setting, and the values it takes.

    Attributes:
        address: full address; see `scenario.addresses`.
        values: as given by the user.
    """

    address: str
    values: tuple[Value, ...]

    @classmethod
    def of(cls, address: str, values: Sequence[object]) -> Axis:
        """An axis, validated as far as possible without a scenario.

        Raises:
            ConfigurationError: an unknown address, or no values.
        """
        whole = canonical(address)
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ConfigurationError(f"{address} is swept over {values!r}", remedy="give a list of values")
        if not values:
            raise ConfigurationError(f"{address} is swept over no values", remedy=f"write them: {address}=1,2,3")
        return cls(whole, tuple(_plain(each) for each in values))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of values.

    Attributes:
        name: name of its scenario; contains the values, so that each cell has its own baseline.
        assignments: value by address, as in the scenario.
        label: for display, with each setting's short name.
    """

    name: str
    assignments: Mapping[str, Value]
    label: str


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The cells of a sweep without the scenarios, for reports.

    Attributes:
        scenario: name of the scenario that is varied.
        addresses: addresses of the axes.
        cells: in the order of the grid, the last axis changing first.
    """

    scenario: str
    addresses: tuple[str, ...]
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, scenario: str, addresses: Sequence[str], cells: Mapping[str, Mapping[str, Value]]) -> Outline:
        """An outline from the assignments of each cell, by cell name."""
        names = short_names(addresses)
        made = (Cell(name=name, assignments=each, label=_label(names, each)) for name, each in cells.items())
        return cls(scenario=scenario, addresses=tuple(addresses), cells=tuple(made))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes: as short as possible while unique."""
        return short_names(self.addresses)


def short_names(addresses: Sequence[str]) -> tuple[str, ...]:
    """Each setting's own name, or its address if two have the same name."""
    short = [address.rpartition(".")[2] for address in addresses]
    return tuple(each if short.count(name) > 1 else name for each, name in zip(addresses, short, strict=True))


def _label(names: Sequence[str], assignments: Mapping[str, Value]) -> str:
    found = zip(names, assignments.values(), strict=True)
    return ", ".join(f"{name}={show_value(value)}" for name, value in found)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A scenario, and the axes along which it is varied."""

    base: ScenarioSpec
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        addresses = [axis.address for axis in self.axes]
        if not addresses:
            remedy = "say what to change: --over dds_flood.rate=500,1000"
            raise ConfigurationError("a sweep needs an axis", remedy=remedy)
        for address in addresses:
            if addresses.count(address) > 1:
                raise ConfigurationError(f"{address} is swept twice", remedy="put all its values into one axis")
        if self.size > LARGEST_GRID:
            shape = " × ".join(str(len(axis.values)) for axis in self.axes)
            hours = self.size * estimate_s(self.base) / 3600
            raise ConfigurationError(
                f"a grid of {shape} = {self.size} cells would take about {hours:.0f} hours; up to {LARGEST_GRID} "
                "cells can be swept",
                remedy="give fewer values, or sweep one axis after another",
            )

    @property
    def size(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    @cached_property
    def specs(self) -> Mapping[str, ScenarioSpec]:
        """The scenario of each cell by name, in the order of the grid: the last axis changes first.

        Raises:
            ConfigurationError: a value is invalid for its setting, or given twice.
        """
        found: dict[str, ScenarioSpec] = {}
        for values in itertools.product(*(axis.values for axis in self.axes)):
            spec = self._spec(values)
            if spec.name in found:
                raise ConfigurationError(f"{spec.name} is there twice", remedy="give each value once")
            found[spec.name] = spec
        return found

    @cached_property
    def outline(self) -> Outline:
        """The outline of the cells; see `specs` for what it raises."""
        addresses = [axis.address for axis in self.axes]
        cells = {name: {each: _plain(value_at(spec, each)) for each in addresses} for name, spec in self.specs.items()}
        return Outline.of(self.base.name, addresses, cells)

    def _spec(self, values: Sequence[Value]) -> ScenarioSpec:
        return at_cell(self.base, {axis.address: value for axis, value in zip(self.axes, values, strict=True)})

    def places(self, number: int) -> tuple[int, ...]:
        """Index of a cell on each axis, from its number in the order of the grid."""
        found = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            found.append(place)
        return tuple(reversed(found))


def at_cell(base: ScenarioSpec, assignments: Mapping[str, Value]) -> ScenarioSpec:
    """A scenario with several settings changed, and named after them.

    Settings of all loads are applied last, because other settings may add loads.

    Raises:
        ConfigurationError: see `assign`.
    """
    spec = base
    for address in sorted(assignments, key=lambda each: each.startswith(f"{ALL_LOADS}.")):
        spec = assign(spec, address, assignments[address])
    found = {address: _plain(value_at(spec, address)) for address in assignments}
    return dataclasses.replace(spec, name=_scenario_name(base.name, found))


def unlike(spec: ScenarioSpec, assignments: Mapping[str, Value]) -> list[str]:
    """Addresses at which a scenario differs from a cell's assignments."""
    return [address for address, value in assignments.items() if _plain(value_at(spec, address)) != value]


def estimate_s(spec: ScenarioSpec) -> float:
    """Approximate duration of a stack start with its trials."""
    return GUESS.of(Amount(1, spec.warmup, spec.trials))


def running_order(grid: Grid, starts: int) -> list[tuple[str, int]]:
    """Name of the cell and number of the start for each stack start, in measuring order.

    In the order of the grid, drift of the machine would look like an effect of the first axis. Each round therefore
    takes all cells once, in a shuffle in which a cell's time is least correlated with its index on any axis. Every
    second round is the reverse of the previous one, so that all cells have the same mean time. The order depends only
    on the grid, so that an interrupted sweep resumes in the same order.
    """
    names = list(grid.specs)
    rng = random.Random("\n".join(names))  # noqa: S311 - the order need not be secret
    order: list[int] = []
    rounds: list[tuple[str, int]] = []
    for start in range(starts):
        order = order[::-1] if start % 2 else _balanced_shuffle(grid, rng)
        rounds += [(names[number], start) for number in order]
    return rounds


def _balanced_shuffle(grid: Grid, rng: random.Random) -> list[int]:
    numbers = range(grid.size)
    places = [grid.places(number) for number in numbers]
    columns = [[place[axis] for place in places] for axis in range(len(grid.axes))]
    shuffles = [rng.sample(numbers, len(numbers)) for _ in range(_SHUFFLES)]

    def drift(order: Sequence[int]) -> float:
        return max(abs(_correlation([column[each] for each in order])) for column in columns)

    return min(shuffles, key=drift)


def _correlation(values: Sequence[int]) -> float:
    """Correlation of values with their position in the sequence; 0 if all are equal."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    together = sum((moment - middle) * (value - mean) for moment, value in enumerate(values))
    spread = math.sqrt(
        sum((moment - middle) ** 2 for moment in range(len(values))) * sum((value - mean) ** 2 for value in values)
    )
    return together / spread if spread else 0.0


def show_value(value: Value) -> str:
    """The shortest unique text of a value."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _plain(value: object) -> Value:
    """A value as JSON represents it."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return str(value)


def _scenario_name(base: str, assignments: Mapping[str, Value]) -> str:
    """A valid file name. A digest makes shortened or altered names unique."""
    whole = ",".join(f"{address}={_safe(show_value(value))}" for address, value in assignments.items())
    return f"{base}@{whole if len(whole) <= _LONGEST_NAME else f'{whole[:_LONGEST_NAME]}-{_digest(whole)}'}"


def _safe(text: str) -> str:
    plain = _UNSAFE.sub("_", text)[:_LONGEST_VALUE]
    return plain if plain == text else f"{plain}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
