"""The command `ros2 ldos`."""
