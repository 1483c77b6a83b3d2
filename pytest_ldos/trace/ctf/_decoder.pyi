from collections.abc import Mapping
from typing import Any

class Unreadable(Exception): ...

def decode(
    files: list[tuple[bytes, list[bytes]]],
    *,
    events: set[str] | None,
    fields: set[str],
    fields_of: dict[str, set[str]],
    window: tuple[int, int] | None,
    threads: int,
    skip_corrupt: bool,
) -> Mapping[str, Any]: ...
def packet_spans(files: list[tuple[bytes, list[bytes]]], *, skip_corrupt: bool) -> list[tuple[int, int, int]]: ...
