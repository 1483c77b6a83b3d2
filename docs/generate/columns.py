"""The page of tables: columns of the execution model and of the flow graph."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Final

from docs.generate.attributes import text_of
from docs.generate.text import code, prose, table
from pytest_ldos.trace.execution import model as schema
from pytest_ldos.trace.execution.model import ENTITIES, INSTANCES, Schema
from pytest_ldos.trace.flow import graph as flow_schema
from pytest_ldos.trace.flow.graph import LINKS

_ENDS: Final = {"_ns": "nanoseconds", "_handle": "address in its process", "handle": "address in its process"}


def columns_page() -> Iterator[str]:
    """Every table of a trace, column by column."""
    yield from ("# Tables of a trace", "")
    yield from (*prose((inspect.getdoc(schema) or "").partition("\n\n")[2]),)
    yield from (
        "The tables are Polars frames (`model.publications`, `flow.transport`), and `ldos export TRACE --to parquet`",
        "writes them as files.",
        "",
    )
    parts = (("Entities", schema, ENTITIES), ("Instances", schema, INSTANCES), ("Message flow", flow_schema, LINKS))
    for title, module, tables in parts:
        yield from (f"## {title}", "", *prose(_paragraphs(text_of(module, tables))))
        for name, columns in tables.items():
            yield from (f"### `{name}`", "", *_columns(columns), "")


def _paragraphs(text: str) -> str:
    """A list of names with hanging indents as paragraphs."""
    return text.replace("\n    ", " ").replace(".\n", ".\n\n").partition("\n\n")[2]


def _columns(columns: Schema) -> Iterator[str]:
    return table(
        ("column", "type", "holds"),
        [(code(name), getattr(kind, "__name__", str(kind)), _meaning(name)) for name, kind in columns.items()],
    )


def _meaning(column: str) -> str:
    known: Mapping[str, Schema] = {**ENTITIES, **INSTANCES}
    last = column.removeprefix("from_").removeprefix("to_")
    for plural in (f"{last}s", f"{last}es"):
        if plural in known:
            return f"`id` in [`{plural}`](#{plural})"
    return next((text for end, text in _ENDS.items() if column.endswith(end)), "")
