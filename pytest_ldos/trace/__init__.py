"""A standalone library for ROS 2 traces: decodes them to tables, an execution model and a message-flow graph."""
