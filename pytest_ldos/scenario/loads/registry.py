"""Registry of loads as data: the spec of each kind in `words.LOADS`, imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.words import LOADS


class _LoadSpecs(Mapping[str, type[LoadSpec]]):
    """Specs by kind; the module ``scenario.loads.KIND`` defines `SPEC`."""

    def __getitem__(self, kind: str) -> type[LoadSpec]:
        if kind not in LOADS:
            raise KeyError(kind)
        return cast("type[LoadSpec]", import_module(f"pytest_ldos.scenario.loads.{kind}").SPEC)

    def __iter__(self) -> Iterator[str]:
        return iter(LOADS)

    def __len__(self) -> int:
        return len(LOADS)


LOAD_SPECS: Final[Mapping[str, type[LoadSpec]]] = _LoadSpecs()
"""Every load by its kind, in the order in which several are applied."""
