"""Reads the ``[[tool.ldos.paths]]`` tables of a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.base.paths import LinkRule, LinkSpec, PathSpec
from pytest_ldos.base.requirements import require

_WHERE: Final = "[[tool.ldos.paths]]"


def parse_paths(tables: Any) -> tuple[PathSpec, ...]:
    """Parses the ``[[tool.ldos.paths]]`` tables of a configuration.

    Raises:
        ConfigurationError: an unknown key, a wrong type, two paths of one name.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError("[tool.ldos] paths must be tables", remedy=f"write each path as {_WHERE}")
    paths = tuple(_parse_path(table) for table in tables)
    names = [path.name for path in paths]
    for name in names:
        require(names.count(name) == 1, f"two paths are called {name!r}", remedy="give each its own name")
    return paths


def _parse_path(table: Mapping[str, Any]) -> PathSpec:
    where = f"{_WHERE} {table.get('name', '')}".rstrip()
    refuse_unknown(table, {each.name for each in dataclasses.fields(PathSpec)}, f"key {where}")
    deadline = table.get("deadline_ms")
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, int | float)):
        raise ConfigurationError(f"{where} deadline_ms is {deadline!r}", remedy="it must be a number of milliseconds")
    hard = table.get("hard", False)
    require(isinstance(hard, bool), f"{where} hard is {hard!r}", remedy="it must be true or false")
    links = table.get("links", [])
    require(
        isinstance(links, list), f"{where} links is {links!r}", remedy="write each link as [[tool.ldos.paths.links]]"
    )
    return PathSpec(
        name=_text(table, "name", where),
        via=_texts(table, "via", where),
        deadline_ms=deadline,
        hard=hard,
        links=tuple(_parse_link(link, where) for link in links),
    )


def _parse_link(table: Any, where: str) -> LinkSpec:
    require(isinstance(table, dict), f"{where}: a link is {table!r}", remedy="write it as a table")
    refuse_unknown(table, {each.name for each in dataclasses.fields(LinkSpec)}, f"key {where} links")
    rule = _text(table, "rule", where)
    require(rule in set(LinkRule), f"{where}: rule {rule!r} of a link", remedy=f"it must be {' or '.join(LinkRule)}")
    return LinkSpec(
        rule=LinkRule(rule),
        node=_text(table, "node", where),
        inputs=_texts(table, "inputs", where),
        outputs=_texts(table, "outputs", where),
    )


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where} has no {key}", remedy=f'{key} = "…"')
    return value


def _texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(each, str) for each in value):
        raise ConfigurationError(f"{where} has no {key}", remedy=f'{key} = ["…", "…"]')
    return tuple(value)
