"""Addresses of a scenario's settings, which sweeps and searches use to name the setting to vary.

Examples: ``trials``, ``stack.control_rate_hz``, ``rmw``, ``dds_flood.rate_hz``. Unit suffixes may be left out
(``dds_flood.rate``), and keys of ``[tool.ldos.stack]`` may follow ``stack.`` as in that table. A load that the
scenario lacks is added with its defaults; ``load.FIELD`` is a field of all loads in the scenario. An unknown address
raises `ConfigurationError`, which names the nearest known one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, get_origin

from pytest_ldos.base.errors import ConfigurationError, nearest, suggest
from pytest_ldos.base.files import field_types
from pytest_ldos.scenario.fields import UNIT_SUFFIXES, in_unit_of, parse_field
from pytest_ldos.scenario.loads import LOAD_SPECS, LoadSpec
from pytest_ldos.scenario.model import ScenarioSpec

ALL_LOADS: Final = "load"

_SHORT: Final[Mapping[str, str]] = {"stack": "stack.kind", "rmw": "stack.ros2.rmw", "sim": "stack.ros2.sim"}

_NO_ADDRESS: Final = frozenset({"name", "loads"})


@dataclasses.dataclass(frozen=True)
class _Place:
    """Resolved address.

    Attributes:
        address: complete and unique; all texts for a field have the same address.
        load: kind of the load it belongs to, `ALL_LOADS`, or empty for the scenario itself.
        path: field names from there; the last may be a key of a mapping.
    """

    address: str
    load: str
    path: tuple[str, ...]


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
    field = _match(field_types(owner), name)
    if field is None:
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
    owners = [each for each in known if _match({each.rpartition(".")[2]: None}, address) is not None]
    if owners:
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
        is_list = get_origin(kind) is tuple
        given = [part for part in value.split("+") if part] if is_list else in_unit_of(name, value)
    return parse_field(kind, given, name)
