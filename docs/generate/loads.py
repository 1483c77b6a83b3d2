"""The page of loads, their settings and their proofs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import groupby

from docs.generate.classes import documented_all, fields, paragraph, unit_of
from docs.generate.text import code, table
from pytest_ldos.base.files import field_types
from pytest_ldos.measure.load.protocol import IMPLEMENTATIONS, GroupedProof, LoadProof
from pytest_ldos.scenario.loads import LOAD_SPECS


def loads_page() -> Iterator[str]:
    """Every load with its keys, and the fields of its proof."""
    yield from (
        "# Loads",
        "",
        "Keys of `[tool.ldos.scenarios.NAME.loads.LOAD]`, of the fixture of the same name, and of sweeps. How to apply",
        "one: [add a load](../how-to/add-a-load.md).",
        "",
    )
    yield from table(
        ("load", "what it is", "settings"),
        [
            (f"[`{kind}`](#loads{kind})", paragraph(spec), ", ".join(map(code, field_types(spec))))
            for kind, spec in LOAD_SPECS.items()
        ],
    )
    yield from (
        "",
        "## Proofs",
        "",
        "A load measures what it did (`flood.proof` in a test, `loads` in a record). Each proof has the following",
        "fields; `group` where the load has processes.",
        "",
    )
    yield from table(("field", "unit", "meaning"), _proven(GroupedProof))
    yield ""
    for kind, spec in LOAD_SPECS.items():
        yield from (f"## `loads.{kind}`", "", paragraph(spec), "")
        yield from fields(spec)
        yield from _proof_of(kind)


def _proof_of(kind: str) -> Iterator[str]:
    """The fields that the proof of one load has besides."""
    rows = _proven(IMPLEMENTATIONS[kind].proof, but=documented_all(GroupedProof), asked=field_types(LOAD_SPECS[kind]))
    if rows:
        yield from ("Its proof, in addition to the settings:", "")
        yield from table(("field", "unit", "meaning"), rows)
        yield ""


def _proven(proof: type[LoadProof], *, but: Iterable[str] = (), asked: Iterable[str] = ()) -> list[tuple[str, ...]]:
    """Rows of a proof's fields.

    Raises:
        SystemExit: one is not documented, and no setting of the load.
    """
    described = documented_all(proof)
    names = [each.name for each in dataclasses.fields(proof) if each.name not in but]
    for name in names:
        if name not in described and name not in asked:
            raise SystemExit(f"reference: {proof.__name__}.{name} has no text: describe it in the class")
    rows = groupby((name for name in names if name in described), key=lambda name: (described[name], unit_of(name)))
    return [(", ".join(map(code, alike)), unit, text) for (text, unit), alike in rows]
