"""The cells of a sweep: every combination of the values of some settings, and the order in which they are measured."""

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

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.scenario.addresses import ALL_LOADS, assign, canonical, value_at
from pytest_ldos.scenario.model import ScenarioSpec

LARGEST_GRID: Final = 1000
"""Cells; what has more is a mistake: it would take days."""

_SHUFFLES: Final = 200
_LONGEST_VALUE: Final = 40
_LONGEST_NAME: Final = 150
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Axis:
    """One setting, and the values it takes in turn.

    Attributes:
        address: whole; see `scenario.addresses`.
        values: as they were asked for.
    """

    address: str
    values: tuple[Value, ...]

    @classmethod
    def of(cls, address: str, values: Sequence[object]) -> Axis:
        """An axis, checked as far as that goes without a scenario.

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
    """One combination.

    Attributes:
        name: of its scenario: it carries the values, so that no cell is ever compared with another one's baseline.
        assignments: value by address, as the scenario has it.
        label: for people, with each setting's short name.
    """

    name: str
    assignments: Mapping[str, Value]
    label: str


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The cells of a sweep without what they measure: all that it takes to tell of them.

    Attributes:
        scenario: which is changed.
        addresses: of the axes.
        cells: in the order of the grid, the last axis changing first.
    """

    scenario: str
    addresses: tuple[str, ...]
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, scenario: str, addresses: Sequence[str], cells: Mapping[str, Mapping[str, Value]]) -> Outline:
        """An outline of what is assigned in each cell, by its name."""
        names = short_names(addresses)
        made = (Cell(name=name, assignments=each, label=_label(names, each)) for name, each in cells.items())
        return cls(scenario=scenario, addresses=tuple(addresses), cells=tuple(made))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the axes: as short as can be while each is another."""
        return short_names(self.addresses)


def short_names(addresses: Sequence[str]) -> tuple[str, ...]:
    """Each setting's own name; its address where two are called alike."""
    short = [address.rpartition(".")[2] for address in addresses]
    return tuple(each if short.count(name) > 1 else name for each, name in zip(addresses, short, strict=True))


def _label(names: Sequence[str], assignments: Mapping[str, Value]) -> str:
    found = zip(names, assignments.values(), strict=True)
    return ", ".join(f"{name}={show_value(value)}" for name, value in found)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A scenario, and the axes along which it is changed."""

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
            raise ConfigurationError(
                f"a grid of {shape} = {self.size} cells; up to {LARGEST_GRID} can be swept",
                remedy="give fewer values, or sweep one axis after another",
            )

    @property
    def size(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    @cached_property
    def specs(self) -> Mapping[str, ScenarioSpec]:
        """The scenario of each cell by name, in the order of the grid: the last axis changes first.

        Raises:
            ConfigurationError: a value that its setting cannot have, or one that is there twice.
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
        """See `specs` for what it raises."""
        addresses = [axis.address for axis in self.axes]
        cells = {name: {each: _plain(value_at(spec, each)) for each in addresses} for name, spec in self.specs.items()}
        return Outline.of(self.base.name, addresses, cells)

    def _spec(self, values: Sequence[Value]) -> ScenarioSpec:
        return at_cell(self.base, {axis.address: value for axis, value in zip(self.axes, values, strict=True)})

    def places(self, number: int) -> tuple[int, ...]:
        """Where a cell stands on each axis, by its number in the order of the grid."""
        found = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            found.append(place)
        return tuple(reversed(found))


def at_cell(base: ScenarioSpec, assignments: Mapping[str, Value]) -> ScenarioSpec:
    """A scenario with several settings changed, and named by them.

    What is said of all loads comes last: others may add loads.

    Raises:
        ConfigurationError: see `assign`.
    """
    spec = base
    for address in sorted(assignments, key=lambda each: each.startswith(f"{ALL_LOADS}.")):
        spec = assign(spec, address, assignments[address])
    found = {address: _plain(value_at(spec, address)) for address in assignments}
    return dataclasses.replace(spec, name=_scenario_name(base.name, found))


def unlike(spec: ScenarioSpec, assignments: Mapping[str, Value]) -> list[str]:
    """Addresses at which a scenario does not have what a cell assigns."""
    return [address for address, value in assignments.items() if _plain(value_at(spec, address)) != value]


def running_order(grid: Grid, starts: int) -> list[tuple[str, int]]:
    """Cell's name and start of each stack start, in the order in which they are to be measured.

    A machine drifts. Cells in the order of the grid would let that pass for an effect of the first axis; so each
    round takes all cells once, in that of many shuffles in which a cell's moment has least to do with its place on
    any axis. Every second round is the one before it in reverse, so that over both each cell's mean moment is the
    same. The order depends on the grid alone: an interrupted sweep has the one it began with.
    """
    names = list(grid.specs)
    rng = random.Random("\n".join(names))  # noqa: S311 - an order that anybody may know
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
    """Of values with their place in a sequence; 0 where all are equal."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    together = sum((moment - middle) * (value - mean) for moment, value in enumerate(values))
    spread = math.sqrt(
        sum((moment - middle) ** 2 for moment in range(len(values))) * sum((value - mean) ** 2 for value in values)
    )
    return together / spread if spread else 0.0


def show_value(value: Value) -> str:
    """A value as short as it stays unique."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _plain(value: object) -> Value:
    """A value as JSON has it."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return str(value)


def _scenario_name(base: str, assignments: Mapping[str, Value]) -> str:
    """A name for files: plain characters alone; what had others, or is long, is told apart by a digest."""
    whole = ",".join(f"{address}={_safe(show_value(value))}" for address, value in assignments.items())
    return f"{base}@{whole if len(whole) <= _LONGEST_NAME else f'{whole[:_LONGEST_NAME]}-{_digest(whole)}'}"


def _safe(text: str) -> str:
    plain = _UNSAFE.sub("_", text)[:_LONGEST_VALUE]
    return plain if plain == text else f"{plain}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
