"""Options of an instrument's command, from the fields of its spec."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pytest_ldos.base.plain import field_types
from pytest_ldos.cli.output import FormatOption, OutputOption
from pytest_ldos.cli.signatures import parameters_of, show_parameters
from pytest_ldos.cli.studies import Outputs, ParquetOption, RecordOption
from pytest_ldos.scenario.described import Described, described_fields

Spec = TypeVar("Spec")


def takes_settings(kind: type[Spec]) -> Callable[[Callable[[Spec, Outputs], None]], Callable[..., None]]:
    """Decorates what a command does with a spec and outputs: its options are the spec's fields and the outputs."""

    def decorate(command: Callable[[Spec, Outputs], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            outputs = {name: given.pop(name) for name in inspect.signature(_outputs).parameters}
            spec = kind(**_plain(kind, given))
            command(spec, _outputs(**outputs))

        show_parameters(run, [*_settings(kind), *parameters_of(_outputs)])
        return run

    return decorate


def _outputs(
    *,
    output: OutputOption = None,
    output_format: FormatOption = None,
    parquet: ParquetOption = None,
    record: RecordOption = None,
) -> Outputs:
    """See `Outputs.of`; its parameters are the options."""
    return Outputs.of(output_format, output, parquet, record)


def _settings(kind: type) -> Iterator[inspect.Parameter]:
    types, texts = field_types(kind), described_fields(kind)
    for field in dataclasses.fields(kind):
        text = texts[field.name]
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field, text),
            annotation=Annotated[Path | None if text.is_path else types[field.name], _info(text)],
        )


def _default(field: dataclasses.Field[Any], text: Described) -> Any:
    if text.is_path:
        return None
    if text.default is not None:
        return text.default
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _info(text: Described) -> Any:
    return typer.Argument(help=text.meaning) if text.is_argument else typer.Option(*text.flags, help=text.meaning)


def _plain(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values as the spec has them: paths as text, ``""`` for none."""
    paths = {name for name, text in described_fields(kind).items() if text.is_path}
    return {name: str(value or "") if name in paths else value for name, value in given.items()}
