# Copyright (c) 2026 The pytest-ldos authors
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in
# all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
# THE SOFTWARE.

"""
An action server that stands for MoveIt's move_group, with a joint state and a transform.

It does what the goal's name says (see `Behaviour`), writes a line for each thing that happens,
and reads a line where a goal waits for the test.
"""

import os
import signal
import sys
import threading

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import TransformStamped
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import MoveItErrorCodes
import rclpy
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectoryPoint

GROUP = 'panda_arm'
POSITION_ERROR_M = 0.003
LONGEST_S = 60.0


def say(line):
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


def die(goal, server):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(goal, server):
    os.kill(os.getpid(), signal.SIGINT)
    server.cancelled.wait(LONGEST_S)


def wait_for_cancel(goal, server):
    server.cancelled.wait(LONGEST_S)
    goal.canceled()
    return MoveItErrorCodes.PREEMPTED


def wait_for_test(goal, server):
    sys.stdin.readline()
    goal.succeed()
    return MoveItErrorCodes.SUCCESS


def stop_answering(goal, server):
    os.kill(os.getpid(), signal.SIGSTOP)
    return MoveItErrorCodes.SUCCESS


def fail_to_execute(goal, server):
    goal.abort()
    return MoveItErrorCodes.CONTROL_FAILED


def forget_the_code(goal, server):
    goal.abort()
    return MoveItErrorCodes.UNDEFINED


def succeed(goal, server):
    goal.succeed()
    return MoveItErrorCodes.SUCCESS


BEHAVIOUR = {
    'die': die, 'leave': leave, 'slow': wait_for_cancel, 'hold': wait_for_test,
    'stop': stop_answering, 'fail': fail_to_execute, 'codeless': forget_the_code}


class FakeMoveGroup:

    def __init__(self, publishes):
        self.node = Node('fake_move_group')
        self.cancelled = threading.Event()
        self._publishes = publishes
        self._tip = (0.0, 0.0, 0.0)
        self._states = self.node.create_publisher(JointState, '/joint_states', 10)
        self._transforms = self.node.create_publisher(TFMessage, '/tf', 10)
        self.node.create_timer(0.01, self._publish)
        self._server = ActionServer(
            self.node, MoveGroup, '/move_action', self._execute,
            goal_callback=self._consider, cancel_callback=self._cancel,
            callback_group=ReentrantCallbackGroup())

    def say_goodbye(self):
        self._server.destroy()
        self.node.destroy_node()

    def _publish(self):
        now = self.node.get_clock().now().to_msg()
        if 'states' in self._publishes:
            state = JointState(name=['panda_joint1'], position=[0.0])
            state.header.stamp = now
            self._states.publish(state)
        if 'transforms' in self._publishes:
            transform = TransformStamped(child_frame_id='panda_link8')
            transform.header.frame_id = 'panda_link0'
            transform.header.stamp = now
            translation = transform.transform.translation
            translation.x, translation.y, translation.z = self._tip
            self._transforms.publish(TFMessage(transforms=[transform]))

    def _consider(self, request):
        name = request.request.goal_constraints[0].name
        say(f'goal {name}')
        if name == 'hold':
            sys.stdin.readline()
        return GoalResponse.REJECT if name == 'refused' else GoalResponse.ACCEPT

    def _cancel(self, goal):
        say('cancel')
        self.cancelled.set()
        return CancelResponse.ACCEPT

    def _execute(self, goal):
        self.cancelled.clear()
        request = goal.request.request
        for state in ('PLANNING', 'PLANNING'):
            goal.publish_feedback(MoveGroup.Feedback(state=state))
        if request.group_name != GROUP:
            goal.abort()
            return self._result(MoveItErrorCodes.INVALID_GROUP_NAME)
        goal.publish_feedback(MoveGroup.Feedback(state='MONITOR'))
        say('monitor')
        constraints = request.goal_constraints[0]
        self._move_to(constraints)
        code = BEHAVIOUR.get(constraints.name, succeed)(goal, self)
        result = self._result(code)
        points = result.planned_trajectory.joint_trajectory.points
        points.append(JointTrajectoryPoint())
        points.append(JointTrajectoryPoint(time_from_start=Duration(sec=1, nanosec=900000000)))
        return result

    def _move_to(self, constraints):
        for constraint in constraints.position_constraints:
            position = constraint.constraint_region.primitive_poses[0].position
            self._tip = (position.x + POSITION_ERROR_M, position.y, position.z)

    def _result(self, code):
        result = MoveGroup.Result()
        result.error_code.val = code
        return result


def main():
    rclpy.init()
    server = FakeMoveGroup(sys.argv[1:])
    executor = MultiThreadedExecutor(num_threads=4)
    executor.add_node(server.node)
    say('up')
    try:
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        server.say_goodbye()
        # A goal that is being executed is not waited for.
        os._exit(0)


if __name__ == '__main__':
    main()
