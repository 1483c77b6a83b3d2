"""Publications by topic."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_ldos.execution.model import Publications
from pytest_ldos.execution.tables import Observed
from pytest_ldos.tracepoints import Ros2


def build_publications(observed: Observed) -> dict[str, Publications]:
    """When something was published on each topic.

    A publisher is known by process and rmw handle, which `rcl_publisher_init` ties to its
    topic: `rcl_publish` has no handle that could be relied on for every publisher (those
    of ``/rosout`` use stack addresses). Discovery messages of the middleware have no such
    publisher and are left out.

    Tracepoints: ``rcl_publisher_init``, ``rmw_publish``.
    """
    inits = observed.table(Ros2.PUBLISHER_INIT)
    published = observed.table(Ros2.RMW_PUBLISH)
    if inits is None or published is None:
        return {}
    rows = observed.rows(published)
    keys = _keys(published["vpid"][rows], published["rmw_publisher_handle"][rows])
    times = published.timestamp_ns[rows]
    topics: dict[str, list[npt.NDArray[np.int64]]] = {}
    for row in observed.rows(inits):
        key = _keys(inits["vpid"][[row]], inits["rmw_publisher_handle"][[row]])
        topics.setdefault(inits.columns["topic_name"][row], []).append(times[keys == key])
    return {topic: Publications(topic, np.sort(np.concatenate(parts))) for topic, parts in topics.items()}


def _keys(pids: npt.NDArray[Any], handles: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Process and handle as one value that compares as a whole."""
    keys = np.empty(len(pids), dtype=[("pid", np.int64), ("handle", np.uint64)])
    keys["pid"] = pids
    keys["handle"] = handles
    return keys
