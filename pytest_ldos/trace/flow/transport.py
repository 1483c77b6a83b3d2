"""Transport links from a publication to each of its receptions."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_at, ids_of, rows_of, times_at, times_of
from pytest_ldos.trace.execution.mapped import Growing, chunks, filled, room_for
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.buffers import link_buffers
from pytest_ldos.trace.flow.schema import LINKS
from pytest_ldos.trace.flow.stamps import link_stamps
from pytest_ldos.trace.flow.topics import unlinked_topics


def link_transport(model: ExecutionModel) -> pl.DataFrame:
    """One row per reception whose publication is in the trace, in the order of the receptions."""
    by_stamp, by_buffer = link_stamps(model), link_buffers(model)
    columns = {name: Growing(dtype) for name, dtype in _COLUMNS.items()}
    for part in chunks(len(model.takes)):
        publication = np.where(by_buffer[part] >= 0, by_buffer[part], by_stamp[part])
        take = np.flatnonzero(publication >= 0).astype(np.int32) + np.int32(part.start)
        publication = publication[publication >= 0]
        columns["publication"].add(publication)
        columns["take"].add(take)
        columns["latency_ns"].add(model.takes["time_ns"].to_numpy()[take] - sent_ns(model, publication, take))
        columns["way"].add(_ways(model, publication, take))
    return frame_of(LINKS["transport"], {name: column.finish() for name, column in columns.items()})


_COLUMNS: Final = {"publication": np.int32, "take": np.int32, "latency_ns": np.int64, "way": np.uint32}


def origin_of_takes(model: ExecutionModel, transport: pl.DataFrame) -> IdArray:
    """Publication of each take, -1 where it is not in the trace; shape ``(takes,)``."""
    origin = filled(len(model.takes), np.int32, -1)
    for part in chunks(len(transport)):
        links = rows_of(transport, part)
        origin[links["take"].to_numpy()] = links["publication"].to_numpy()
    return origin


def sent_ns(model: ExecutionModel, publication: IdArray, take: IdArray) -> TimesNs:
    """Send time of each message on the way on which it was taken: through the middleware, or inside the process."""
    within = model.takes["intra"].gather(take).to_numpy()
    through_ns, within_ns = (times_at(model.publications, name, publication) for name in ("time_ns", "intra_ns"))
    return np.where(within, within_ns, through_ns)


def _ways(model: ExecutionModel, publication: IdArray, take: IdArray) -> npt.NDArray[np.uint32]:
    """Number of each way in `WAYS`."""
    process_of, host_of = ids_of(model.threads, "process"), ids_of(model.processes, "host")
    sender = process_of[ids_at(model.publications, "thread", publication)]
    receiver = process_of[ids_at(model.takes, "thread", take)]
    within = model.takes["intra"].gather(take).to_numpy()
    conditions = [within, sender == receiver, host_of[sender] == host_of[receiver]]
    return np.select(conditions, [0, 1, 2], 3).astype(np.uint32)


def count_without_partner(model: ExecutionModel, transport: pl.DataFrame) -> dict[str, int]:
    """Publications that nobody took and receptions of unknown origin, by cause; causes with count 0 are omitted."""
    heard = set(model.subscriptions["topic"].drop_nulls())
    told = set(model.publishers["topic"].drop_nulls())
    unlinked = unlinked_topics(model)
    untaken, unseen = _without(model, transport["publication"], "publications", "publisher")
    unsent, _ = _without(model, transport["take"], "takes", "subscription")
    unlinked_sent, unlinked_taken = (sum(found.pop(topic, 0) for topic in unlinked) for found in (untaken, unsent))
    listened, published = (
        sum(count for topic, count in found.items() if topic in known)
        for found, known in ((untaken, heard), (unsent, told))
    )
    counts = {
        "publications that cannot be linked with receptions": unlinked_sent,
        "receptions that cannot be linked with publications": unlinked_taken,
        "publications on topics nobody observed subscribes to": sum(untaken.values()) - listened,
        "publications no observed subscription took": listened,
        "of these were published while events of a subscribing process may be missing": unseen,
        "receptions on topics nobody observed publishes on": sum(unsent.values()) - published,
        "receptions whose publication is not in the trace": published,
    }
    return {cause: count for cause, count in counts.items() if count}


def _without(model: ExecutionModel, linked: pl.Series, table: str, end: str) -> tuple[Counter[str | None], int]:
    """Number of publications or takes without a link, by topic; ``None`` where that is unknown.

    The second number is of those during which a process that subscribes to the topic is not whole.
    """
    instances, ends = getattr(model, table), getattr(model, f"{end}s")
    is_linked = room_for(len(instances), np.bool_)
    for part in chunks(len(linked)):
        is_linked[linked.slice(part.start, part.stop - part.start).to_numpy()] = True
    found: Counter[str | None] = Counter()
    unseen = 0
    topics = [*ends["topic"], None]
    subscribing = dict(model.subscriptions.group_by("topic").agg("process").iter_rows())
    for part in chunks(len(instances)):
        rows = rows_of(instances, part)
        own, times_ns = ids_of(rows, end)[~is_linked[part]], times_of(rows, "time_ns")[~is_linked[part]]
        for number, count in enumerate(np.bincount(own + 1).tolist()):
            topic = topics[number - 1]
            found[topic] += count
            if count and model.coverage and topic is not None:
                stretch = model.coverage.stretches(subscribing.get(topic, ()), times_ns[own == number - 1])
                unseen += int(np.count_nonzero(stretch < 0))
    return found, unseen
