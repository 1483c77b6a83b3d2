from collections.abc import Mapping
from typing import Any

class Unreadable(Exception): ...

class Opened:
    def packet_spans(self) -> list[tuple[int, int, int]]: ...
    def decode(
        self,
        *,
        events: set[str] | None,
        fields: set[str],
        fields_of: dict[str, set[str]],
        window: tuple[int, int] | None,
        threads: int,
    ) -> Mapping[str, Any]: ...
    def tally(
        self, *, events: set[str], by: list[str], threads: int
    ) -> dict[str, tuple[list[str], list[tuple[int, int, list[int | str | None]]]]]: ...

def open_streams(files: list[tuple[bytes, list[bytes]]], *, threads: int, skip_corrupt: bool) -> Opened: ...
