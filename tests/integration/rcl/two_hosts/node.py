# mypy: disable-error-code="misc"
"""A node that sends to one topic and receives from another, each a hundred times a second."""

import sys

import rclpy
from rclpy.node import Node
from std_msgs.msg import String


class End(Node):
    def __init__(self, name, count):
        super().__init__(name)
        self.left = {"sent": count, "received": count}
        other = "right" if name == "left" else "left"
        self.words = self.create_publisher(String, f"/from_{name}", 1000)
        self.create_subscription(String, f"/from_{other}", self.hear, 1000)
        self.create_timer(0.01, self.talk)

    def talk(self):
        if self.left["sent"] and self.words.get_subscription_count():
            self.words.publish(String(data=str(self.left["sent"])))
            self.left["sent"] -= 1
        elif not any(self.left.values()) and self.words.wait_for_all_acked():
            raise SystemExit

    def hear(self, _):
        self.left["received"] -= 1


rclpy.init()
rclpy.spin(End(sys.argv[1], int(sys.argv[2])))
