"""Indirect links declared in the configuration, resolved to entities of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.paths import BUILT_IN_PATHS, LinkSpec, PathSpec
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.indirect import Declared


def declared_in(paths: Sequence[PathSpec], model: ExecutionModel) -> list[Declared]:
    """Links of all paths whose nodes are in the model; a node that did not run links nothing.

    Raises:
        ConfigurationError: a node that ran has no such input or output.
    """
    links = dict.fromkeys(link for path in paths for link in path.links)
    found = [_declared(link, node, model) for link in links for node in _nodes(link, model)]
    return [each for each in found if each.publishers]


def describe_unused(paths: Sequence[PathSpec], model: ExecutionModel) -> Iterator[str]:
    """Names in paths and links that the model does not have, each with the nearest match."""
    nodes, topics = model.nodes["name"].drop_nulls().to_list(), model.topics()
    for path in paths:
        for topic in path.via if not path.of_phases else ():
            if topic not in topics and path not in BUILT_IN_PATHS:
                yield f"path {path.name}: no topic {topic} in the trace; {suggest(topic, topics)}"
        for link in path.links:
            if link.node not in nodes:
                near = suggest(link.node, nodes)
                yield f"path {path.name}: there is no node {link.node}, so its link links nothing; {near}"


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
