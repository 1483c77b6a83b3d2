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
from pytest_ldos.campaign.estimate import GUESS, Amount
from pytest_ldos.scenario.addresses import ALL_LOADS, assign, canonical, value_at
from pytest_ldos.scenario.model import ScenarioSpec

LARGEST_GRID: Final = 1000
"""Limit of the number of cells; a larger grid would take days."""

_SHUFFLES: Final = 200
_LONGEST_VALUE: Final = 40
_LONGEST_NAME: Final = 150
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Axis:
    """One setting by its full address, and the values it takes."""

    address: str
    values: tuple[Value, ...]

    @classmethod
    def of(cls, address: str, values: Sequence[object]) -> Axis:
        """An axis; raises `ConfigurationError` for an unknown address, or without values."""
        whole = canonical(address)
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ConfigurationError(f"{address} is swept over {values!r}", remedy="give a list of values")
        if not values:
            raise ConfigurationError(f"{address} is swept over no values", remedy=f"write them: {address}=1,2,3")
        return cls(whole, tuple(_plain(each) for each in values))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of values; the name of its scenario contains them, so that each cell has its own baseline."""

    name: str
    assignments: Mapping[str, Value]
    label: str


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The cells of a sweep without their scenarios."""

    scenario: str
    addresses: tuple[str, ...]
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, scenario: str, addresses: Sequence[str], cells: Mapping[str, Mapping[str, Value]]) -> Outline:
        names = short_names(addresses)
        made = []
        for name, assignments in cells.items():
            values = zip(names, assignments.values(), strict=True)
            label = ", ".join(f"{short}={show_value(value)}" for short, value in values)
            made.append(Cell(name=name, assignments=assignments, label=label))
        return cls(scenario=scenario, addresses=tuple(addresses), cells=tuple(made))

    @property
    def names(self) -> tuple[str, ...]:
        return short_names(self.addresses)


def short_names(addresses: Sequence[str]) -> tuple[str, ...]:
    """Each setting's own name, or its address if two have the same name."""
    short = [address.rpartition(".")[2] for address in addresses]
    return tuple(each if short.count(name) > 1 else name for each, name in zip(addresses, short, strict=True))


@dataclass(frozen=True, kw_only=True)
class Grid:
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
        addresses = [axis.address for axis in self.axes]
        for values in itertools.product(*(axis.values for axis in self.axes)):
            spec = at_cell(self.base, dict(zip(addresses, values, strict=True)))
            if spec.name in found:
                raise ConfigurationError(f"{spec.name} is there twice", remedy="give each value once")
            found[spec.name] = spec
        return found

    @cached_property
    def outline(self) -> Outline:
        addresses = [axis.address for axis in self.axes]
        cells = {name: {each: _plain(value_at(spec, each)) for each in addresses} for name, spec in self.specs.items()}
        return Outline.of(self.base.name, addresses, cells)


def at_cell(base: ScenarioSpec, assignments: Mapping[str, Value]) -> ScenarioSpec:
    """A scenario with several settings changed, and named after them; raises as `assign`.

    Settings of all loads are applied last, because other settings may add loads. The name is a valid file name, with a
    digest if it was shortened or altered.
    """
    spec = base
    for address in sorted(assignments, key=lambda each: each.startswith(f"{ALL_LOADS}.")):
        spec = assign(spec, address, assignments[address])
    parts = []
    for address in assignments:
        text = show_value(_plain(value_at(spec, address)))
        safe = _UNSAFE.sub("_", text)[:_LONGEST_VALUE]
        parts.append(f"{address}={safe if safe == text else f'{safe}-{_digest(text)}'}")
    whole = ",".join(parts)
    short = whole if len(whole) <= _LONGEST_NAME else f"{whole[:_LONGEST_NAME]}-{_digest(whole)}"
    return dataclasses.replace(spec, name=f"{base.name}@{short}")


def unlike(spec: ScenarioSpec, assignments: Mapping[str, Value]) -> list[str]:
    """Addresses at which a scenario differs from a cell's assignments."""
    return [address for address, value in assignments.items() if _plain(value_at(spec, address)) != value]


def estimate_s(spec: ScenarioSpec) -> float:
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
    columns = list(zip(*itertools.product(*(range(len(axis.values)) for axis in grid.axes)), strict=True))

    def drift(order: Sequence[int]) -> float:
        return max(abs(_correlation([column[each] for each in order])) for column in columns)

    order: list[int] = []
    rounds: list[tuple[str, int]] = []
    for start in range(starts):
        if start % 2:
            order.reverse()
        else:
            order = min((rng.sample(range(grid.size), grid.size) for _ in range(_SHUFFLES)), key=drift)
        rounds += [(names[number], start) for number in order]
    return rounds


def _correlation(values: Sequence[int]) -> float:
    """Correlation of values with their position in the sequence; 0 if all are equal."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    pairs = [(moment - middle, value - mean) for moment, value in enumerate(values)]
    spread = math.sqrt(sum(moment**2 for moment, _ in pairs) * sum(value**2 for _, value in pairs))
    return sum(moment * value for moment, value in pairs) / spread if spread else 0.0


def show_value(value: Value) -> str:
    """The shortest unique text of a value."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _plain(value: object) -> Value:
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
