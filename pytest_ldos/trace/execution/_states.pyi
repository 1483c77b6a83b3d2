from typing import Any

def build(
    *,
    switches: dict[str, Any],
    moves: list[tuple[int, dict[str, Any]]],
    host_of_trace: list[int],
    losses: list[list[tuple[int, int]]],
) -> dict[str, Any]: ...
