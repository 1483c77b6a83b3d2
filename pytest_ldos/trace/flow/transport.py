"""Transport links from a publication to each of its receptions."""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.buffers import link_buffers
from pytest_ldos.trace.flow.schema import BETWEEN_HOSTS, IN_PROCESS, LINKS, SAME_HOST, SAME_PROCESS
from pytest_ldos.trace.flow.stamps import link_stamps


def link_transport(model: ExecutionModel) -> pl.DataFrame:
    """One row per reception whose publication is in the trace, in the order of the receptions."""
    by_stamp, by_buffer = link_stamps(model), link_buffers(model)
    publication = np.where(by_buffer >= 0, by_buffer, by_stamp)
    take = np.flatnonzero(publication >= 0).astype(np.int32)
    publication = publication[take]
    columns = {
        "publication": publication,
        "take": take,
        "latency_ns": times_of(model.takes, "time_ns")[take] - sent_ns(model, publication, take),
        "way": _ways(model, publication, take),
    }
    return frame_of(LINKS["transport"], columns)


def sent_ns(model: ExecutionModel, publication: IdArray, take: IdArray) -> TimesNs:
    """Send time of each message on the way on which it was taken: through the middleware, or inside the process."""
    within = model.takes["intra"].to_numpy()[take]
    through_ns, within_ns = (times_of(model.publications, name)[publication] for name in ("time_ns", "intra_ns"))
    return np.where(within, within_ns, through_ns)


def _ways(model: ExecutionModel, publication: IdArray, take: IdArray) -> pl.Series:
    process_of, host_of = ids_of(model.threads, "process"), ids_of(model.processes, "host")
    sender = process_of[ids_of(model.publications, "thread")[publication]]
    receiver = process_of[ids_of(model.takes, "thread")[take]]
    conditions = [model.takes["intra"].to_numpy()[take], sender == receiver, host_of[sender] == host_of[receiver]]
    number = np.select(conditions, [0, 1, 2], 3).astype(np.uint32)
    return pl.Series("way", [IN_PROCESS, SAME_PROCESS, SAME_HOST, BETWEEN_HOSTS]).gather(number)


def count_without_partner(model: ExecutionModel, transport: pl.DataFrame) -> dict[str, int]:
    """Publications that nobody took and receptions of unknown origin, by cause; causes with count 0 are omitted."""
    heard = set(model.subscriptions["topic"].drop_nulls())
    told = set(model.publishers["topic"].drop_nulls())
    untaken = model.publications.join(transport, left_on="id", right_on="publication", how="anti")
    unsent = model.takes.join(transport, left_on="id", right_on="take", how="anti")
    topics_out = untaken.join(model.publishers, left_on="publisher", right_on="id", how="left")["topic"]
    topics_in = unsent.join(model.subscriptions, left_on="subscription", right_on="id", how="left")["topic"]
    listened = int(topics_out.is_in(heard).sum())
    published = int(topics_in.is_in(told).sum())
    counts = {
        "publications on topics nobody observed subscribes to": len(untaken) - listened,
        "publications no observed subscription took": listened,
        "receptions on topics nobody observed publishes on": len(unsent) - published,
        "receptions whose publication is not in the trace": published,
    }
    return {cause: count for cause, count in counts.items() if count}
