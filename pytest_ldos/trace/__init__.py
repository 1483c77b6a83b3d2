"""A library for ROS 2 traces that stands alone: bytes to tables, to what ran, to who caused what."""
