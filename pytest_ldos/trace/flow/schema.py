"""Tables of a flow graph. Columns named like a table of the model hold its `id`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from pytest_ldos.trace.execution.annotations import PARTIAL_SYNC, PERIODIC_ASYNC
from pytest_ldos.trace.execution.schema import Schema

_ID: Final = pl.Int32
_TIME: Final = pl.Int64

IN_PROCESS: Final = "intra_process"
SAME_PROCESS: Final = "same_process"
SAME_HOST: Final = "same_host"
BETWEEN_HOSTS: Final = "between_hosts"
WAYS: Final = (IN_PROCESS, SAME_PROCESS, SAME_HOST, BETWEEN_HOSTS)

DIRECT: Final = "direct"
RULES: Final = (DIRECT, PERIODIC_ASYNC, PARTIAL_SYNC)

LINKS: Final[Mapping[str, Schema]] = {
    "transport": {"publication": _ID, "take": _ID, "latency_ns": _TIME, "way": pl.Enum(WAYS)},
    "triggers": {"take": _ID, "callback_run": _ID, "polled": pl.Boolean},
    "causes": {"callback_run": _ID, "publication": _ID},
    "uses": {"take": _ID, "publication": _ID, "rule": pl.Enum(RULES)},
    "hops": {"from_publication": _ID, "take": _ID, "to_publication": _ID, "rule": pl.Enum(RULES)},
}
"""Causal links.

transport: a message from its publication to one reception. `way` is ``intra_process``,
    ``same_process``, ``same_host`` or ``between_hosts``.
triggers: the message that a callback received; `polled` if the callback took it itself.
causes: the callback in which a message was published, the innermost where callbacks nest.
uses: the received messages from which a publication was made. `rule` is ``direct`` (published by the
    callback that received the message), ``periodic_async`` or ``partial_sync``.
hops: transport and uses combined, publication to publication.
"""
