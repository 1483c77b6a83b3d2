"""Indirect links that a configuration declares, as entities of a model."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.flow.indirect import Declared
from pytest_ldos.scenario.paths import LinkSpec, PathSpec


def declared_in(paths: Sequence[PathSpec], model: ExecutionModel) -> list[Declared]:
    """The links of all paths whose nodes are in the model; a node that did not run links nothing.

    Raises:
        ConfigurationError: a node that ran has no such input or output.
    """
    links = dict.fromkeys(link for path in paths for link in path.links)
    found = [_declared(link, node, model) for link in links for node in _nodes(link, model)]
    return [each for each in found if each.publishers]


def _nodes(link: LinkSpec, model: ExecutionModel) -> list[int]:
    return model.nodes.filter(pl.col("name") == link.node)["id"].to_list()


def _declared(link: LinkSpec, node: int, model: ExecutionModel) -> Declared:
    return Declared(
        str(link.rule),
        _ends(model.subscriptions, node, link, link.inputs, "subscribes to"),
        _ends(model.publishers, node, link, link.outputs, "publishes on"),
    )


def _ends(table: pl.DataFrame, node: int, link: LinkSpec, topics: Sequence[str], what: str) -> tuple[int, ...]:
    own = table.filter(pl.col("node") == node)
    known = sorted(own["topic"].drop_nulls().unique())
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(
                f"a declared link says that {link.node} {what} {topic}, which it does not",
                remedy=f"it {what} {', '.join(known) or 'nothing'}",
            )
    return tuple(own.filter(pl.col("topic").is_in(list(topics)))["id"].to_list())
