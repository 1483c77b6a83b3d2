"""The page of the formats of records: trials, reports, history and calibrations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.generate.attributes import text_of
from docs.generate.classes import documented_all, paragraph
from docs.generate.report_schema import build_schema
from docs.generate.text import code, flowing, table
from pytest_ldos.base.files import field_types
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.host.interference import Interference
from pytest_ldos.judge.baseline import history, key
from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial import artifacts
from pytest_ldos.measure.trial.record import Look, MotionTrial, RoundTrial, TrialSet

_OF_TRIALS = (TrialSet, MotionTrial, RoundTrial, Measurement, Metric, Look, Fingerprint, Interference)


def records_page() -> Iterator[str]:
    """Every field of the files that runs leave."""
    yield from (
        "# Formats of records",
        "",
        "JSON files name their `kind` and the version of their `schema`; a file of another version is refused.",
        "Where the files lie: [files of a run](files.md).",
        "",
        f"## `trials.json` (schema {artifacts.SCHEMA_VERSION})",
        "",
        "Runs, baselines and calibration runs have this form: the fields of a trial set, each object as its class",
        "here. A measurement is `{value, details, source}`, or has `missing` or `invalid` with the reason alone.",
        "",
    )
    yield from _classes(_OF_TRIALS)
    yield from _report()
    yield from ("## History (Parquet)", "", flowing(text_of(history, history.SCHEMA)), "")
    yield from table(("column", "type"), [(code(name), str(kind)) for name, kind in history.SCHEMA.items()])
    yield from ("", f"## `*.calibration.json` (schema {key.SCHEMA_VERSION})", "")
    yield from _classes((Calibration, MetricNoise))


def _classes(kinds: Iterable[type]) -> Iterator[str]:
    for kind in kinds:
        texts = documented_all(kind)
        yield from (f"### {kind.__name__}", "", paragraph(kind), "")
        yield from table(
            ("field", "type", "meaning"),
            [(code(name), _type(hint), texts.get(name, "")) for name, hint in field_types(kind).items()],
        )
        yield ""


def _report() -> Iterator[str]:
    schema = build_schema()
    yield from (
        f"## Report (`.json`, schema {schema['properties']['schema']['const']})",
        "",
        "`pytest_ldos/show/report/schema.json` is its JSON Schema.",
        "",
        *_properties(schema),
    )
    for name, each in schema["$defs"].items():
        if "properties" in each:
            yield from (f"### {name}", "", flowing(each["description"]), "", *_properties(each))


def _properties(schema: Mapping[str, Any]) -> Iterator[str]:
    found = schema["properties"].items()
    yield from table(("field", "meaning"), [(code(name), flowing(each.get("description", ""))) for name, each in found])
    yield ""


def _type(hint: Any) -> str:
    """The type as the class writes it, without modules."""
    text = getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint)
    parts = (
        part.rpartition(".")[2] for part in text.replace(", ...", "").replace("[", " [ ").replace(",", " , ").split()
    )
    return code(" ".join(parts).replace(" [ ", "[").replace(" , ", ", ").replace(" ]", "]"))
