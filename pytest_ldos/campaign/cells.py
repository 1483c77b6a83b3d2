"""Addresses of a scenario's settings, cells of a sweep (combinations of values), and the order of their measurement.

Addresses name the setting to vary: ``trials``, ``stack.control_rate_hz``, ``rmw``, ``dds_flood.rate_hz``. Unit suffixes
may be left out (``dds_flood.rate``), and keys of ``[tool.ldos.stack]`` may follow ``stack.`` as in that table. A load
that the scenario lacks is added with its defaults; ``load.FIELD`` is a field of all loads in the scenario. An unknown
address raises `ConfigurationError`, which names the nearest known one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import random
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, Final, get_origin

from pytest_ldos.base.errors import ConfigurationError, nearest, suggest
from pytest_ldos.base.files import field_types
from pytest_ldos.campaign.estimate import GUESS, Amount
from pytest_ldos.scenario.fields import UNIT_SUFFIXES, in_unit_of, parse_field
from pytest_ldos.scenario.loads import LOAD_SPECS, LoadSpec
from pytest_ldos.scenario.model import ScenarioSpec

ALL_LOADS: Final = "load"

_SHORT: Final[Mapping[str, str]] = {"stack": "stack.kind", "rmw": "stack.ros2.rmw", "sim": "stack.ros2.sim"}

_NO_ADDRESS: Final = frozenset({"name", "loads"})


@dataclass(frozen=True)
class _Place:
    address: str  # complete and unique; all texts for a field have the same address
    load: str  # kind of the load it belongs to, `ALL_LOADS`, or empty for the scenario itself
    path: tuple[str, ...]  # field names from there; the last may be a key of a mapping


def assign(spec: ScenarioSpec, address: str, value: object) -> ScenarioSpec:
    """The scenario with one setting changed to a value of the field's type, or to a text."""
    place = _find(address)
    try:
        if place.load:
            return dataclasses.replace(spec, loads=_assign_to_loads(spec, place, value))
        changed = _changed(spec, place.path, value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place.address}={value}: {error.message}", remedy=error.remedy) from None
    assert isinstance(changed, ScenarioSpec)
    return changed


def canonical(address: str) -> str:
    return _find(address).address


def value_at(spec: ScenarioSpec, address: str) -> object:
    """Value of a scenario at an address; of the first of several loads, and ``None`` without such a load."""
    place = _find(address)
    owners: list[Any] = [each for each in spec.loads if _is_of(each, place)] if place.load else [spec]
    found: Any = owners[0] if owners else None
    for name in place.path:
        found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
    return found


@cache
def known_addresses() -> Mapping[str, object]:
    found = dict(_addresses_of(ScenarioSpec(name="any"), "", but=_NO_ADDRESS))
    for kind, spec in LOAD_SPECS.items():
        found.update(_addresses_of(spec(), f"{kind}."))
    names = [name for spec in LOAD_SPECS.values() for name in field_types(spec)]
    found.update({f"{ALL_LOADS}.{name}": None for name in sorted(set(names)) if names.count(name) > 1})
    return found


def _addresses_of(spec: Any, prefix: str, *, but: frozenset[str] = frozenset()) -> Iterator[tuple[str, object]]:
    for name in field_types(type(spec)):
        value = getattr(spec, name)
        if name in but:
            continue
        if dataclasses.is_dataclass(value):
            yield from _addresses_of(value, f"{prefix}{name}.")
        elif isinstance(value, Mapping):
            yield f"{prefix}{name}.NAME", None
        else:
            yield f"{prefix}{name}", value


def _find(address: str) -> _Place:
    full = _SHORT.get(address, address)
    first, _, rest = full.partition(".")
    if first in {ALL_LOADS, "loads"} and rest:
        fields = {field for spec in LOAD_SPECS.values() if (field := _match(field_types(spec), rest))}
        if len(fields) != 1:
            raise _unknown(f"{ALL_LOADS}.{rest}")
        return _Place(f"{ALL_LOADS}.{min(fields)}", ALL_LOADS, tuple(fields))
    path: tuple[str, ...] | None = None
    if first in LOAD_SPECS:
        path = _resolve(LOAD_SPECS[first], rest) if rest else None
    elif first not in _NO_ADDRESS:
        # ``stack.group`` is ``stack.ros2.group``, since ``[tool.ldos.stack]`` holds both.
        of_ros2 = f"stack.ros2.{rest}" if first == "stack" and rest else ""
        path = _resolve(ScenarioSpec, full) or _resolve(ScenarioSpec, of_ros2)
    if path is None:
        raise _unknown(address)
    load = first if first in LOAD_SPECS else ""
    return _Place(".".join((load, *path) if load else path), load, path)


def _resolve(owner: type, address: str) -> tuple[str, ...] | None:
    """Field names that lead to the address from a class; ``None`` if there is no such path."""
    name, _, rest = address.partition(".")
    if (field := _match(field_types(owner), name)) is None:
        return None
    kind = field_types(owner)[field]
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        below = _resolve(kind, rest)
        return None if below is None else (field, *below)
    if get_origin(kind) is Mapping:
        return (field, rest) if rest else None
    return None if rest else (field,)


def _match(fields: Mapping[str, object], name: str) -> str | None:
    """The field with this name, or the only field with this name plus a unit."""
    if name in fields:
        return name
    found = [whole for suffix in UNIT_SUFFIXES if (whole := f"{name}_{suffix}") in fields]
    return found[0] if len(found) == 1 else None


def _unknown(address: str) -> ConfigurationError:
    """An error with the nearest address, or for a field alone (``rate``), with addresses that end with it."""
    known = [*known_addresses(), *_SHORT]
    remedy = "ldos sweep --addresses lists all that there are"
    if owners := [each for each in known if _match({each.rpartition(".")[2]: None}, address) is not None]:
        remedy = f"did you mean {', '.join(repr(each) for each in owners[:4])}?"
    else:
        splits = ((each, *each.rpartition("_")) for each in known)
        without_units = [before if last in UNIT_SUFFIXES else each for each, before, _, last in splits]
        plain = dict.fromkeys([*known, *without_units])
        remedy = suggest(address, plain) if nearest(address, plain) else remedy
    return ConfigurationError(f"unknown address '{address}'", remedy=remedy)


def _assign_to_loads(spec: ScenarioSpec, place: _Place, value: object) -> tuple[LoadSpec, ...]:
    mine = [each for each in spec.loads if _is_of(each, place)]
    if place.load == ALL_LOADS and not mine:
        raise ConfigurationError(
            f"scenario '{spec.name}' has no load with such a field",
            remedy="name a load before it, as in dds_flood.group, or a scenario that has loads",
        )
    if not mine:
        loads = (*spec.loads, _changed(LOAD_SPECS[place.load](), place.path, value))
        return tuple(sorted(loads, key=lambda load: list(LOAD_SPECS).index(load.KIND)))
    return tuple(_changed(each, place.path, value) if each in mine else each for each in spec.loads)


def _is_of(load: Any, place: _Place) -> bool:
    return place.load == load.KIND or (place.load == ALL_LOADS and place.path[0] in field_types(type(load)))


def _changed(owner: Any, path: tuple[str, ...], value: object) -> Any:
    name, rest = path[0], path[1:]
    before = getattr(owner, name)
    after: object
    if rest and isinstance(before, Mapping):
        after = {**before, rest[0]: str(value)}
    elif rest:
        after = _changed(before, rest, value)
    else:
        after = _parsed(name, field_types(type(owner))[name], value)
    return dataclasses.replace(owner, **{name: after})


def _parsed(name: str, kind: Any, value: object) -> object:
    """A value of a field's type; for a tuple, its members or a text that joins them with ``+``."""
    given: object = value
    if isinstance(value, str):
        given = [part for part in value.split("+") if part] if get_origin(kind) is tuple else in_unit_of(name, value)
    return parse_field(kind, given, name)


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
        if not (addresses := [axis.address for axis in self.axes]):
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

        Raises `ConfigurationError` if a value is invalid for its setting, or given twice.
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
    return statistics.correlation(range(len(values)), values) if len(set(values)) > 1 else 0.0


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
