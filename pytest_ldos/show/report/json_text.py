"""A document for programs: JSON, as ``schema.json`` beside this file describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.data_text import to_json
from pytest_ldos.show.report.document import KIND, SCHEMA_VERSION, Document


def render(document: Document) -> Rendered:
    """JSON text; numbers keep their full precision, what is no ASCII is escaped."""
    verdict = None if document.verdict is None else document.verdict.value
    plain = {"kind": KIND, "schema": SCHEMA_VERSION, "verdict": verdict, **asdict(document)}
    return to_json(plain)


def read_schema() -> dict[str, Any]:
    """The schema of this form (JSON Schema, draft 2020-12)."""
    schema: dict[str, Any] = json.loads(files("pytest_ldos.show.report").joinpath("schema.json").read_text("utf-8"))
    return schema
