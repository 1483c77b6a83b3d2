"""The option by which commands are given metrics of a user's own."""

from __future__ import annotations

from typing import Annotated

import typer

from pytest_ldos.measure.metrics.own import HOOK

MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="FILE_OR_MODULE", help=f"Metrics of your own: a conftest.py or module with {HOOK}()."
    ),
]
