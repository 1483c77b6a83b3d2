"""Service calls of distributions that trace them."""

from __future__ import annotations

from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.flow.build import build_flow
from tests.builders.ros2 import Recording

GIDS = {1: bytes(range(16)), 2: bytes(range(16, 32))}
SERVER = 9


class Calls:
    """Two clients of one service, each in its own process; both number their requests from 1."""

    def __init__(self) -> None:
        self.recording = Recording()
        for pid in GIDS:
            self.emit(
                Ros2.CLIENT_INIT, pid, pid, client_handle=10, node_handle=1, rmw_client_handle=11, service_name="/add"
            )
        self.emit(
            Ros2.SERVICE_INIT, 5, SERVER, service_handle=20, node_handle=1, rmw_service_handle=21, service_name="/add"
        )

    def emit(self, event, time_ns, pid, **fields):
        self.recording.emit(event, time_ns, pid=pid, **fields)

    def ask(self, time_ns, client, number):
        self.emit(Ros2.RMW_SEND_REQUEST, time_ns, client, rmw_client_handle=11, request=5, sequence_number=number)

    def serve(self, time_ns, client, number, *, answers=True, answer_ns=5):
        """Takes a request and runs its callback for 9 ns; the response follows `answer_ns` after the take."""
        of_client = {"client_gid": GIDS[client], "sequence_number": number}
        self.emit(Ros2.RMW_TAKE_REQUEST, time_ns, SERVER, rmw_service_handle=21, request=6, taken=1, **of_client)
        self.emit(Ros2.CALLBACK_START, time_ns + 1, SERVER, callback=30, is_intra_process=0)
        self.emit(Ros2.CALLBACK_END, time_ns + 9, SERVER, callback=30)
        if answers:
            answer = {"rmw_service_handle": 21, "response": 7, "timestamp": 1, **of_client}
            self.emit(Ros2.RMW_SEND_RESPONSE, time_ns + answer_ns, SERVER, **answer)

    def get(self, time_ns, client, number):
        self.emit(
            Ros2.RMW_TAKE_RESPONSE, time_ns, client,
            rmw_client_handle=11, response=8, sequence_number=number, source_timestamp=1, taken=1,
        )  # fmt: skip

    def links(self):
        """(client's pid, times of the four steps, responding run) of each call."""
        flow = build_flow(self.recording.model())
        model = flow.model
        times = dict(model.requests.select("id", "time_ns").iter_rows())
        pid_of = dict(
            model.threads.join(model.processes, left_on="process", right_on="id").select("id", "pid").iter_rows()
        )
        thread = dict(model.requests.select("id", "thread").iter_rows())
        return [
            (
                pid_of[thread[row["send_request"]]],
                *(times.get(row[step]) for step in ("send_request", "take_request", "send_response", "take_response")),
                row["callback_run"],
            )
            for row in flow.calls.iter_rows(named=True)
        ]


def test_calls_with_equal_numbers_of_two_clients_are_separate():
    calls = Calls()
    calls.ask(100, 1, 1)
    calls.ask(110, 2, 1)
    calls.serve(200, 2, 1)
    calls.serve(300, 1, 1)
    calls.get(400, 1, 1)
    calls.get(410, 2, 1)
    calls.ask(500, 1, 2)
    calls.serve(510, 1, 2)
    calls.get(530, 1, 2)
    calls.ask(600, 2, 2)
    calls.serve(610, 2, 2)
    calls.get(630, 2, 2)
    assert calls.links() == [
        (1, 100, 300, 305, 400, 1),
        (2, 110, 200, 205, 410, 0),
        (1, 500, 510, 515, 530, 2),
        (2, 600, 610, 615, 630, 3),
    ]


def test_returned_response_is_sent_after_the_callback():
    """Like rclcpp and rclpy. Without a run since the take, the responding run is unknown."""
    calls = Calls()
    calls.ask(100, 1, 1)
    calls.serve(200, 1, 1, answer_ns=12)
    calls.ask(300, 2, 1)
    calls.serve(400, 2, 1, answer_ns=0)
    assert calls.links() == [(1, 100, 200, 212, None, 0), (2, 300, 400, 400, None, None)]


def test_steps_without_events_are_null():
    calls = Calls()
    calls.ask(100, 1, 1)
    calls.serve(200, 1, 1)
    calls.get(300, 1, 1)
    calls.ask(400, 1, 2)
    calls.serve(500, 1, 2, answers=False)
    calls.ask(600, 1, 3)
    assert calls.links() == [
        (1, 100, 200, 205, 300, 0),
        (1, 400, 500, None, None, None),
        (1, 600, None, None, None, None),
    ]


def test_without_these_events_there_are_no_calls():
    assert Calls().links() == []
