"""A publisher of `std_msgs/String` at 1000 Hz, best effort and volatile, in the environment of each stack that starts.

``flood.py TOPIC`` waits for a move_group, and publishes in its DDS domain until it ends, and so on.
"""

import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil


def follow(topic: str) -> None:
    while True:
        stacks = [each for each in psutil.process_iter(["name"]) if each.info["name"] == "move_group"]
        for stack in stacks:
            with suppress(psutil.Error):
                command = [sys.executable, __file__, topic, "publish"]
                publisher = subprocess.Popen(command, env=stack.environ())
                try:
                    stack.wait()
                finally:
                    publisher.terminate()
                    publisher.wait()
        time.sleep(0.05)


def publish(topic: str) -> None:
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    rclpy.init()
    node = rclpy.create_node("msg_flood")
    qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher, message = node.create_publisher(String, topic, qos), String(data="X" * 1024)
    node.create_timer(0.001, lambda: publisher.publish(message))
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(publish(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    follow(sys.argv[1])
