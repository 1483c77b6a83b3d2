"""The system under test: stacks, and DDS as ROS 2 uses it."""
