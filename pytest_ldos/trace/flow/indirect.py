"""Indirect causal links: publications made from messages that earlier callbacks received.

*Periodic asynchronous*: a publication uses the last message of each input.
*Partial synchronous*: a publication is made when each input has received a message since the previous one.
After Bédard, Lajoie, Beltrame, Dagenais: Message Flow Analysis with Complex Causal Links for
Distributed ROS 2 Systems (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.annotations import PARTIAL_SYNC, PERIODIC_ASYNC
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.causal import first_linked, publication_begins
from pytest_ldos.trace.flow.schema import LINKS


@dataclass(frozen=True)
class Declared:
    """Declared use of messages of some subscriptions by some publishers; ids of the model."""

    rule: str
    subscriptions: tuple[int, ...]
    publishers: tuple[int, ...]


@dataclass(frozen=True)
class _Receptions:
    """Messages that one subscription received, in order, and when each became usable.

    Attributes:
        begin_ns: start of the callback that received the message, or time of the take if a callback polled it.
        polled: True if callbacks poll this subscription most of the time.
    """

    take: IdArray
    begin_ns: TimesNs
    polled: bool

    def last_for(self, outputs: _Outputs) -> IdArray:
        """Index of the last message usable for each output, -1 where there is none.

        A message passed to a callback is usable by callbacks that begin no earlier than that callback. A polled
        message is usable by publications that are no earlier than the take.
        """
        made_ns = outputs.time_ns if self.polled else outputs.begin_ns
        return np.searchsorted(self.begin_ns, made_ns, side="right") - 1


@dataclass(frozen=True)
class _Outputs:
    """Publications of one publisher, in order: their times, and the starts of the callbacks that made them."""

    publication: IdArray
    time_ns: TimesNs
    begin_ns: TimesNs


def annotated(model: ExecutionModel) -> list[Declared]:
    """Links that the application annotated in its trace."""
    columns = model.link_annotations.select("rule", "subscriptions", "publishers")
    return [Declared(rule, tuple(subscriptions), tuple(pubs)) for rule, subscriptions, pubs in columns.iter_rows()]


def link_indirect(
    model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame, declared: Sequence[Declared]
) -> pl.DataFrame:
    """Links each publication to the messages from which, by its declaration, it was made."""
    if not declared:
        return pl.DataFrame(schema=dict(LINKS["uses"]))
    receptions = _Received(model, triggers)
    outputs = _Published(model, causes)
    parts = [
        _frame(each.rule, _RULES[each.rule](outputs.of(publisher), [receptions.of(s) for s in each.subscriptions]))
        for each in declared
        for publisher in each.publishers
    ]
    return pl.concat([pl.DataFrame(schema=dict(LINKS["uses"])), *parts]).unique(maintain_order=True)


def _periodic_async(outputs: _Outputs, inputs: Sequence[_Receptions]) -> list[tuple[IdArray, IdArray]]:
    """For each input, the last message whose callback began before the publishing one did."""
    links = []
    for received in inputs:
        last = received.last_for(outputs)
        links.append((received.take[last[last >= 0]], outputs.publication[last >= 0]))
    return links


def _partial_sync(outputs: _Outputs, inputs: Sequence[_Receptions]) -> list[tuple[IdArray, IdArray]]:
    """For each input, the last message since the previous publication; none is used twice."""
    links = []
    for received in inputs:
        last = received.last_for(outputs)
        fresh = last >= 0
        fresh[1:] &= last[1:] > np.maximum.accumulate(last)[:-1]
        links.append((received.take[last[fresh]], outputs.publication[fresh]))
    return links


_Rule = Callable[[_Outputs, Sequence[_Receptions]], list[tuple[IdArray, IdArray]]]
_RULES: Final[Mapping[str, _Rule]] = {PERIODIC_ASYNC: _periodic_async, PARTIAL_SYNC: _partial_sync}


def _frame(rule: str, links: Sequence[tuple[IdArray, IdArray]]) -> pl.DataFrame:
    take = np.concatenate([takes for takes, _ in links] or [np.empty(0, dtype=np.int32)])
    publication = np.concatenate([publications for _, publications in links] or [np.empty(0, dtype=np.int32)])
    return frame_of(LINKS["uses"], {"take": take, "publication": publication, "rule": [rule] * len(take)})


class _Received:
    def __init__(self, model: ExecutionModel, triggers: pl.DataFrame) -> None:
        run = first_linked(len(model.takes), triggers, "take", "callback_run")
        taken_ns = times_of(model.takes, "time_ns")
        start_ns = times_of(model.callback_runs, "start_ns")
        self._polled = np.zeros(len(model.takes), dtype=bool)
        self._polled[ids_of(triggers, "take")] = triggers["polled"].to_numpy()
        self._subscription = ids_of(model.takes, "subscription")
        self._begin_ns = np.where(self._polled, taken_ns, _of_run(start_ns, run, taken_ns))

    def of(self, subscription: int) -> _Receptions:
        take = np.flatnonzero(self._subscription == subscription)
        take = take[np.argsort(self._begin_ns[take], kind="stable")].astype(np.int32)
        return _Receptions(take, self._begin_ns[take], 2 * int(self._polled[take].sum()) > len(take))


class _Published:
    def __init__(self, model: ExecutionModel, causes: pl.DataFrame) -> None:
        self._publisher = ids_of(model.publications, "publisher")
        self._time_ns = publication_begins(model)
        run = first_linked(len(model.publications), causes, "publication", "callback_run")
        self._begin_ns = _of_run(times_of(model.callback_runs, "start_ns"), run, self._time_ns)

    def of(self, publisher: int) -> _Outputs:
        rows = np.flatnonzero(self._publisher == publisher).astype(np.int32)
        return _Outputs(rows, self._time_ns[rows], self._begin_ns[rows])


def _of_run(run_ns: TimesNs, run: IdArray, otherwise_ns: TimesNs) -> TimesNs:
    if len(run_ns) == 0:
        return otherwise_ns
    return np.where(run >= 0, run_ns[run], otherwise_ns)
