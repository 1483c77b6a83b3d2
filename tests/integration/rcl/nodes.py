# mypy: disable-error-code="misc"
"""Nodes of real rcl and rclpy for the tests in this folder: one process each, by role."""

import contextlib
import json
import os
import sys
import time

import rclpy
from geometry_msgs.msg import PointStamped
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci


def log(kind, node, number):
    """A line of the application's own record of what it sent and got."""
    entry = {"kind": kind, "node": node, "pid": os.getpid(), "topic": "/chatter", "seq": number}
    print(json.dumps(entry), flush=True)


class Talker(Node):
    def __init__(self, count, period_s):
        super().__init__("talker")
        self.left = count
        self.words = self.create_publisher(String, "chatter", 1000)
        self.create_timer(period_s, self.talk)

    def talk(self):
        if self.left and self.words.get_subscription_count():
            log("pub", "talker", self.left)
            self.words.publish(String(data=str(self.left)))
            self.left -= 1
        elif not self.left and self.words.wait_for_all_acked():
            raise SystemExit


class Listener(Node):
    def __init__(self, count):
        super().__init__("listener", namespace="/ears")
        self.left = count
        self.create_subscription(String, "/chatter", self.hear, 1000)

    def hear(self, word):
        log("recv", "ears/listener", int(word.data))
        self.left -= 1
        if not self.left:
            raise SystemExit


class Server(Node):
    """Orders below zero are rejected, zero is aborted, and each number of another takes 20 ms."""

    def __init__(self):
        super().__init__("server")
        self.create_service(SetBool, "switch", self.switch)
        self.action = ActionServer(
            self,
            Fibonacci,
            "count",
            self.count,
            goal_callback=lambda goal: GoalResponse.REJECT if goal.order < 0 else GoalResponse.ACCEPT,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )

    def switch(self, request, response):
        response.success, response.message = request.data, "" if request.data else "the switch is stuck"
        return response

    def count(self, goal):
        for number in range(goal.request.order):
            if goal.is_cancel_requested:
                print("canceled", flush=True)
                goal.canceled()
                return Fibonacci.Result()
            goal.publish_feedback(Fibonacci.Feedback(sequence=[number]))
            time.sleep(0.02)
        goal.succeed() if goal.request.order else goal.abort()
        return Fibonacci.Result(sequence=[*range(goal.request.order)])


class Arm(Node):
    """Sends joint states of an age in seconds, a hundred each second."""

    def __init__(self, age_s):
        super().__init__("arm")
        self.age = Duration(seconds=age_s)
        self.states = self.create_publisher(JointState, "/joint_states", 10)
        self.create_timer(0.01, self.send)

    def send(self):
        state = JointState()
        state.header.stamp = (self.get_clock().now() - self.age).to_msg()
        self.states.publish(state)


class Values(Node):
    """Publishes the numbers from 1 to `count` for each line of its input, once it has a subscription."""

    def __init__(self, topic, kind, count, best_effort):
        super().__init__("values")
        reliability = ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE
        types = {"Float64": Float64, "PointStamped": PointStamped}
        self.sender = self.create_publisher(types[kind], topic, QoSProfile(depth=count, reliability=reliability))
        self.count = count
        self.create_timer(0.01, self.send)

    def send(self):
        if self.sender.get_subscription_count() and sys.stdin.readline():
            for number in map(float, range(1, self.count + 1)):
                message = self.sender.msg_type()
                setattr(*((message, "data") if hasattr(message, "data") else (message.point, "x")), number)
                self.sender.publish(message)
            self.sender.wait_for_all_acked()
            log("pub", "values", self.count)


class Machine(LifecycleNode):
    """Becomes active after a while."""

    def __init__(self):
        super().__init__("machine")
        self.later = self.create_timer(0.5, self.activate)

    def activate(self):
        self.later.cancel()
        self.trigger_configure()
        self.trigger_activate()


ROLES = {"talker": Talker, "listener": Listener, "server": Server, "machine": Machine, "arm": Arm, "values": Values}

rclpy.init()
executor = MultiThreadedExecutor(4) if sys.argv[1] == "server" else rclpy.executors.SingleThreadedExecutor()
executor.add_node(ROLES[sys.argv[1]](*json.loads(sys.argv[2])))
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException, SystemExit):
    executor.spin()
