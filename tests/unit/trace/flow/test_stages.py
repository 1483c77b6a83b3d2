"""Planning, split by the planner's stages."""

from __future__ import annotations

from pytest_ldos.base.ros2 import Marker, PathSpec
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import break_down
from pytest_ldos.trace.flow.lineage import find_path
from tests.builders.ros2 import Recording

FEEDBACK = "/move_action/_action/feedback"


class Planning:
    """A goal whose feedback reports planning at 1000 and executing at 9000."""

    def __init__(self) -> None:
        self.recording = Recording()
        client, server = self.recording.process(1), self.recording.process(2)
        self.client, self.server = client.thread(), server.thread()
        node = server.node("/move_group")
        self.feedback = node.publisher(FEEDBACK)
        self.subscription = client.node("/client").subscription(FEEDBACK)

    def reported(self, end_ns: int, name: str, ago_ns: int = 0) -> None:
        self.server.at(end_ns + ago_ns).emit(Marker.PLANNING_STAGE, stage=name, ago_ns=ago_ns)

    def segments(self) -> list[tuple[str, str, int]]:
        for at, phase in ((1000, "planning"), (9000, "executing")):
            message = self.server.at(at).publish(self.feedback)
            self.client.at(at + 100).take(self.subscription, message)
            self.client.at(at + 200).emit(Marker.PHASE, goal_id="one", phase=phase)
        flow = build_flow(self.recording.model())
        table = break_down(flow, find_path(flow, PathSpec(name="T1", via=("planning", "executing"))))
        assert table["begin_ns"].to_list()[1:] == table["end_ns"].to_list()[:-1]
        assert table["duration_ns"].sum() == 8000
        planned = table.filter(table["end_ns"] <= 9000)
        return planned.select("kind", "subject", "duration_ns").rows()


def test_without_stages_planning_is_one_piece():
    assert Planning().segments() == [("outside callbacks", "/move_group from planning to executing", 7800)]


def test_late_reports_place_stages_at_their_end():
    planning = Planning()
    planning.reported(2000, "request adapters", 3000)
    planning.reported(4000, "search", 1000)
    planning.reported(5000, "simplification")
    assert planning.segments() == [
        ("planning stage", "up to request adapters", 800),
        ("planning stage", "search", 2000),
        ("planning stage", "simplification", 1000),
        ("outside callbacks", "/move_group from planning to executing", 4000),
    ]


def test_planning_service_has_stages_on_its_server():
    recording = Recording()
    server, client = recording.process(1).thread(), recording.process(2).thread()
    client.at(1000).emit(Marker.PHASE, goal_id="one", phase="planning")
    server.at(4000).emit(Marker.PLANNING_STAGE, stage="search", ago_ns=500)
    client.at(9000).emit(Marker.PHASE, goal_id="one", phase="executing")
    flow = build_flow(recording.model())
    table = break_down(flow, find_path(flow, PathSpec(name="T1", via=("planning", "executing"))))
    assert table.select("kind", "subject", "duration_ns").rows() == [
        ("planning stage", "up to search", 2500),
        ("outside callbacks", "from planning to executing", 5500),
    ]


def test_stages_of_another_thread_are_ignored():
    planning = Planning()
    planning.recording.process(3).thread().at(4000).emit(Marker.PLANNING_STAGE, stage="search", ago_ns=0)
    assert planning.segments() == [("outside callbacks", "/move_group from planning to executing", 7800)]
