"""Links of publications that were made from several messages: annotated, declared, or inferred from callbacks.

*Periodic asynchronous*: a publication uses the last message of each input.
*Partial synchronous*: a publication is made when each input has received a message since the previous one.
After Bédard, Lajoie, Beltrame, Dagenais: Message Flow Analysis with Complex Causal Links for
Distributed ROS 2 Systems (2022).

*Exact* and *approximate time* are synchronizers of message_filters, *transform* is a lookup or message filter of tf2.
They have no events. They publish in a callback of an input, and use each message once at most, in the order received.
In exact time, the callback's message is used; in approximate time, it may be later. A link is certain if that leaves
one message. Otherwise, the likely one is linked, with the number of candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, LinkRule, LinkSpec, PathSpec
from pytest_ldos.base.text import counted
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import LINKS, SYNCHRONIZER, FlowGraph, Names, Runs, publication_begins
from pytest_ldos.trace.flow.transport import first_linked


class _Declared(NamedTuple):
    """A rule with the subscriptions of each input and with publishers; `label` names the link in remarks."""

    rule: str
    inputs: tuple[tuple[int, ...], ...]
    publishers: tuple[int, ...]
    label: str = ""


Rows = npt.NDArray[Any]
_Found = tuple[list[pl.DataFrame], list[str]]  # links, and remarks on what is not certain about them


def link_inputs(flow: FlowGraph, runs: Runs, paths: Sequence[PathSpec]) -> FlowGraph:
    """Adds annotated and declared links and those of synchronizers, and in words what is not certain about them."""
    model = flow.model
    annotations = model.link_annotations.select("rule", "subscriptions", "publishers").iter_rows()
    declared = [_Declared(rule, (tuple(inputs),), tuple(outputs)) for rule, inputs, outputs in annotations]
    declared += _declared_in(paths, model)
    is_filter = pl.col("symbol").str.contains("message_filters::Subscriber", literal=True)
    filters = model.callbacks.filter(is_filter & pl.col("subscription").is_not_null())
    if not declared and filters.is_empty():
        return flow
    steps = _Steps(flow, runs)
    parts, remarks = [pl.DataFrame(schema=dict(LINKS["uses"]))], list[str]()
    for link in (*declared, *_synchronizers(steps, filters, declared)):
        if link.rule in {LinkRule.PERIODIC_ASYNC, LinkRule.PARTIAL_SYNC}:
            parts += _last_messages(steps, link)
            continue
        frames, said = _transforms(steps, link) if link.rule == LinkRule.TRANSFORM else _sets(steps, link)
        parts += frames
        remarks += [f"{link.label}: {each}" for each in said]
    # the message whose callback published need not be one of those that were used
    is_open = pl.col("rule").is_in([LinkRule.APPROXIMATE_TIME.value, SYNCHRONIZER])
    released = pl.concat(parts).filter(is_open)["publication"].implode()
    both = pl.concat([flow.uses.filter(~pl.col("publication").is_in(released)), *parts])
    uses = both.unique(["take", "publication"], keep="first", maintain_order=True)
    return replace(flow, uses=uses, uncertain=tuple(remarks))


class _Steps:
    """Receptions and publications of a model, with the callback runs that they belong to.

    A message passed to a callback is usable by callbacks that begin no earlier than that callback. If callbacks poll
    most messages of a subscription, these are usable by publications that are no earlier than the take.
    """

    def __init__(self, flow: FlowGraph, runs: Runs) -> None:
        model, takes = flow.model, len(flow.model.takes)
        self.model, self.made_ns = model, publication_begins(model)
        self.subscription, self.publisher = ids_of(model.takes, "subscription"), ids_of(model.publications, "publisher")
        self.sender = pick(self.publisher, first_linked(takes, flow.transport, "take", "publication"), -1)
        run_of_take = first_linked(takes, flow.triggers, "take", "callback_run")
        self.run = first_linked(len(self.made_ns), flow.causes, "publication", "callback_run")
        waited = flow.triggers.filter(~pl.col("polled"))
        take_of_run = first_linked(len(runs.start_ns), waited, "callback_run", "take")
        self.trigger = pick(take_of_run, self.run, -1)
        self.by = pick(self.subscription, self.trigger, -1)
        self.polled = np.zeros(takes, dtype=bool)
        self.polled[ids_of(flow.triggers, "take")] = flow.triggers["polled"].to_numpy()
        taken_ns, source_ns = times_of(model.takes, "time_ns"), times_of(model.takes, "source_ns")
        own = self.polled | (run_of_take < 0)
        self.usable_ns, self.over_ns = (
            np.where(own, taken_ns, pick(times_ns, run_of_take, NEVER)) for times_ns in (runs.start_ns, runs.end_ns)
        )
        self.begun_ns = np.where(self.run < 0, self.made_ns, pick(runs.start_ns, self.run, NEVER))
        thread, at_ns = ids_of(model.header_stamps, "thread"), times_of(model.header_stamps, "time_ns")
        now, following = runs.at(thread, at_ns), runs.timeline.next(runs.clock.keys(thread, at_ns), after=True)
        stamped = pick(take_of_run, np.where(now < 0, following, now), -1)
        self.header_ns = np.full(takes, NEVER)
        self.header_ns[stamped[stamped >= 0]] = times_of(model.header_stamps, "stamp_ns")[stamped >= 0]
        self.sent_ns = np.select([self.header_ns != NEVER, source_ns != NEVER], [self.header_ns, source_ns], taken_ns)

    def received(self, subscriptions: Sequence[int]) -> IdArray:
        """Messages of subscriptions, in the order in which they were usable."""
        take = np.flatnonzero(np.isin(self.subscription, subscriptions))
        return take[np.argsort(self.usable_ns[take], kind="stable")]


def _last_messages(steps: _Steps, link: _Declared) -> Iterator[pl.DataFrame]:
    for sender, receiver in product(link.publishers, chain(*link.inputs)):
        publication, take = np.flatnonzero(steps.publisher == sender), steps.received([receiver])
        is_polled = 2 * int(steps.polled[take].sum()) > len(take)
        until_ns = (steps.made_ns if is_polled else steps.begun_ns)[publication]
        last = np.searchsorted(steps.usable_ns[take], until_ns, side="right") - 1
        used = last >= 0
        if link.rule == LinkRule.PARTIAL_SYNC:  # each message is used once
            used[1:] &= last[1:] > np.maximum.accumulate(last)[:-1]
        yield _frame(link.rule, take[last[used]], publication[used], np.ones(used.sum(), dtype=int))


def _frame(rule: str, take: IdArray, publication: IdArray, candidates: IdArray) -> pl.DataFrame:
    columns = {"take": take, "publication": publication, "rule": [rule] * len(take), "candidates": candidates}
    return mapped.frame_of(LINKS["uses"], {**columns, "certain": (candidates == 1) & (rule != SYNCHRONIZER)})


_TRANSFORMS: Final = ("/tf", "/tf_static")
_BUFFERED_NS: Final = 10_000_000_000  # default cache time of tf2's buffer


def _transforms(steps: _Steps, link: _Declared) -> _Found:
    """Links to the newest message of each sender of transforms, and to the message that waited in a message filter."""
    topic = steps.model.subscriptions["topic"].to_list()
    buffered = [each for each in chain(*link.inputs) if topic[each] in _TRANSFORMS]
    waiting = tuple(some for some in link.inputs if some[0] not in buffered)
    frames, remarks = list[pl.DataFrame](), list[str]()
    publication = np.flatnonzero(np.isin(steps.publisher, link.publishers))
    if waiting:
        frames, remarks = _sets(steps, link._replace(inputs=waiting), releases=buffered)
        publication = np.unique(np.concatenate([publication[:0], *(ids_of(each, "publication") for each in frames)]))
    take, call_ns = steps.received(buffered), steps.made_ns[publication]
    until, since = (np.searchsorted(steps.usable_ns[take], call_ns - ago, side="right") for ago in (0, _BUFFERED_NS))
    for sender in np.unique(steps.sender[take]):
        own = np.flatnonzero(steps.sender[take] == sender)
        last = np.searchsorted(own, until) - 1
        used = last >= 0
        newest = take[own[last[used]]]
        count = np.where(newest == steps.trigger[publication[used]], 1, np.maximum((until - since)[used], 2))
        frames.append(_frame(link.rule, newest, publication[used], count))
    looked_up = (until - since)[~np.isin(steps.by[publication], buffered)]
    if len(looked_up):
        remarks.append(
            f"≈ in {counted(len(looked_up), 'publication')}: no event names the transform that was used; linked is the "
            f"newest of each publisher, of {looked_up.min()} to {looked_up.max()} in the buffer; no newer was used"
        )
    return frames, remarks


_LOST: Final = "events of its process were lost"
_CONCURRENT: Final = "its callbacks ran at the same time, so their order is not known"
_BROKEN: Final = "its inputs had no new message for every publication, unlike those of a synchronizer"
_STAMPLESS: Final = "others were dropped or waited, and no event has the stamps of their headers (ldos:header_stamp)"
_DECLARE: Final = "≈: which policy of message_filters it has is not recorded; declare exact_time or approximate_time"


def _sets(steps: _Steps, link: _Declared, releases: Sequence[int] = ()) -> _Found:
    """Links of publications for each of which a callback, of an input or `releases`, used one message of each input."""
    made = np.flatnonzero(np.isin(steps.publisher, link.publishers))
    inputs = [max(some, key=lambda each: int((steps.by[made] == each).sum())) for some in link.inputs]
    is_own = np.isin(steps.by[made], [*inputs, *releases])
    frames, remarks, made = list[pl.DataFrame](), list[str](), made[is_own]
    if others := int((~is_own).sum()):
        remarks.append(f"{counted(others, 'publication')} outside the callbacks of its inputs: without these links")
    runs, of = np.unique(steps.run[made], return_inverse=True)
    last_ns, trigger = (np.zeros(len(runs), dtype=np.int64) for _ in range(2))
    last_ns[of], trigger[of] = steps.made_ns[made], steps.trigger[made]  # publications are in order of time
    order = np.argsort(last_ns, kind="stable")
    of, last_ns, trigger = np.argsort(order)[of], last_ns[order], trigger[order]
    takes = [steps.received([each]) for each in inputs]
    is_lossy = bool({*steps.model.subscriptions["process"].gather(inputs)} & {*steps.model.coverage.processes})
    overlaps = [(steps.usable_ns[take][1:] < steps.over_ns[take][:-1]).any() for take in takes]
    bounds = [_bounds(steps, link.rule, take, trigger, last_ns) for take in takes]
    earliest, latest, fixed = (np.stack(each) for each in zip(*bounds, strict=True))
    broken: npt.NDArray[np.bool_] = np.any(earliest > latest, axis=0)
    if link.rule == SYNCHRONIZER:
        if broken.any():
            return [], []  # it is none
        remarks.append(_DECLARE)
    elif broken.any():
        remarks.append(f"{counted(int(broken.sum()), 'callback')} without these links: {_BROKEN}")
    chosen, used = _choose([steps.sent_ns[take] for take in takes], earliest, latest), of[~broken[of]]
    for row, take in enumerate(takes):
        doubt = _BROKEN if broken.any() else _LOST if is_lossy else _CONCURRENT if overlaps[row] else ""
        count = latest[row] - earliest[row] + 1
        count = np.where(fixed[row] & ~broken, 1, np.maximum(count, 2)) if doubt else count
        if len(used):
            frames.append(_frame(link.rule, take[chosen[row][used]], made[~broken[of]], count[used]))
        several = count[used][count[used] > 1].tolist()
        if several and link.rule != SYNCHRONIZER:
            span = " to ".join(map(str, sorted({min(several), max(several)})))
            topic = steps.model.subscriptions["topic"][inputs[row]]
            share = f"≈ in {len(several)} of {counted(len(used), 'publication')}"
            remarks.append(f"{share}: one of {span} messages on {topic} was used; {doubt or _STAMPLESS}")
    return frames, remarks


def _bounds(steps: _Steps, rule: str, take: IdArray, trigger: IdArray, last_ns: TimesNs) -> list[Rows]:
    """Positions of the earliest and the latest message that each set may have; and 1 for sets of which it is known."""
    number = np.arange(len(last_ns))
    latest = np.searchsorted(steps.usable_ns[take], last_ns, side="right") - 1
    earliest, fixed = np.zeros(len(number), dtype=np.int64), np.full(len(number), -1)
    if rule in {LinkRule.EXACT_TIME, LinkRule.TRANSFORM} and len(take):
        place = np.full(len(steps.subscription), -1)
        place[take] = np.arange(len(take))
        fixed = place[trigger]
    if rule == LinkRule.EXACT_TIME and len(take):  # the only one with the stamp of the callback's message
        header_ns, order = steps.header_ns[trigger], np.argsort(steps.header_ns[take], kind="stable")
        low, high = (np.searchsorted(steps.header_ns[take][order], header_ns, side) for side in ("left", "right"))
        equal = order[np.minimum(low, len(order) - 1)]
        is_only = (high - low == 1) & (header_ns != NEVER) & (equal <= latest)
        fixed = np.where((fixed < 0) & is_only, equal, fixed)
    is_fixed = fixed >= 0
    earliest[is_fixed] = latest[is_fixed] = fixed[is_fixed]
    earliest = np.maximum.accumulate(earliest - number) + number
    latest = np.minimum.accumulate((latest - number)[::-1])[::-1] + number
    return [earliest, latest, is_fixed]


_ENOUGH: Final = 5  # sets without a doubt from which the usual distance between inputs is known
_MOST: Final = 100  # candidates of which the likely one is chosen


def _choose(times_ns: Sequence[TimesNs], earliest: Rows, latest: Rows) -> Rows:
    """Likely message of each set: those sent closest to each other, less the usual distance between inputs."""
    chosen, usual = np.maximum(latest, 0), np.zeros(len(times_ns))
    sure = np.flatnonzero((earliest == latest).all(axis=0))
    if len(sure) >= _ENOUGH:
        sent = np.stack([time[row] for time, row in zip(times_ns, chosen[:, sure], strict=True)])
        usual = np.median(sent - sent[0], axis=1)
    for each in np.flatnonzero((earliest < latest).any(axis=0) & (earliest <= latest).all(axis=0)):
        first, last = np.maximum(earliest[:, each], latest[:, each] - _MOST), latest[:, each] + 1
        spans = list(map(slice, first.tolist(), last.tolist()))
        sent_of = [(time[span] - shift)[::-1] for time, span, shift in zip(times_ns, spans, usual, strict=True)]
        pivot = min(sent_of, key=len)
        nearest = [np.abs(sent[:, None] - pivot).argmin(axis=0) for sent in sent_of]
        best = int(np.argmin(np.ptp([sent[row] for sent, row in zip(sent_of, nearest, strict=True)], axis=0)))
        chosen[:, each] = last - 1 - [row[best] for row in nearest]
    return chosen


def _synchronizers(steps: _Steps, filters: pl.DataFrame, declared: Sequence[_Declared]) -> Iterator[_Declared]:
    """Publishers that published in callbacks of message_filters only, in a node with several of them."""
    model, names = steps.model, Names(steps.model)
    known = {publisher for link in declared for publisher in link.publishers}
    topics = model.subscriptions["topic"].to_list()
    for (node,), group in filters.group_by("node", maintain_order=True):
        own = sorted(group["subscription"].to_list())
        publishers = model.publishers.filter((pl.col("node") == node) & (pl.col("topic") != "/rosout"))
        for publisher, topic in publishers.select("id", "topic").iter_rows():
            by = set(steps.by[steps.publisher == publisher].tolist())
            inputs = [each for each in own if each in by or len(by) == 1]
            if publisher not in known and by and by <= set(own) and len({topics[each] for each in inputs}) > 1:
                several = ", ".join(("" if each in inputs else "perhaps ") + topics[each] for each in own)
                label = f"{names.node(node)} → {topic} looks like a synchronizer of {several}"
                yield _Declared(SYNCHRONIZER, tuple((each,) for each in inputs), (publisher,), label)


def _declared_in(paths: Sequence[PathSpec], model: ExecutionModel) -> list[_Declared]:
    """Links of all paths whose nodes are in the model; refuses inputs and outputs that a node lacks."""
    links = dict.fromkeys(link for path in paths for link in path.links)
    found = []
    for link in links:
        for node in model.nodes.filter(pl.col("name") == link.node)["id"].to_list():
            subscriptions, publishers = (each.filter(node=node) for each in (model.subscriptions, model.publishers))
            if link.rule is LinkRule.TRANSFORM:  # a listener of tf2 may have made a node for itself
                nodes = model.nodes.filter(pl.col("name").str.contains("/transform_listener_impl_"))
                its = nodes.filter(process=model.nodes["process"][node])["id"].implode()
                theirs = model.subscriptions.filter(pl.col("node").is_in(its))
                subscriptions = pl.concat([subscriptions, theirs]).unique("topic", keep="first", maintain_order=True)
            inputs = _ends(subscriptions, link, link.inputs, "subscribes to")
            outputs = tuple(chain(*_ends(publishers, link, link.outputs, "publishes on")))
            if outputs:
                label = f"{link.node} → {', '.join(link.outputs)} ({link.rule})"
                found.append(_Declared(str(link.rule), inputs, outputs, label))
    return found


def describe_unused(paths: Sequence[PathSpec], model: ExecutionModel) -> Iterator[str]:
    """Names in paths and links that are missing from the model, each with the nearest match."""
    nodes, topics = model.nodes["name"].drop_nulls().to_list(), model.topics()
    for path in paths:
        for topic in path.via if not path.of_phases else ():
            if topic not in topics and path not in BUILT_IN_PATHS:
                yield f"path {path.name}: no topic {topic} in the trace; {suggest(topic, topics)}"
        for link in path.links:
            if link.node not in nodes:
                near = suggest(link.node, nodes)
                yield f"path {path.name}: there is no node {link.node}, so its link links nothing; {near}"


def _ends(own: pl.DataFrame, link: LinkSpec, topics: Sequence[str], what: str) -> tuple[tuple[int, ...], ...]:
    known = sorted(own["topic"].drop_nulls().unique())
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(
                f"a declared link says that {link.node} {what} {topic}, which it does not",
                remedy=f"it {what} {', '.join(known) or 'nothing'}",
            )
    return tuple(tuple(own.filter(pl.col("topic") == topic)["id"].to_list()) for topic in topics)
