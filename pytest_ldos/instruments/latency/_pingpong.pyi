# Both sides of the exchange; see `native`.

class DdsError(RuntimeError): ...  # Cyclone DDS refused a call, or is not available.

class Participant:
    def __init__(self, library: str, domain: int, *, reliable: bool) -> None: ...

class PingResult:
    @property
    def round_trips(self) -> bytes: ...  # Nanoseconds, 64 bits each.
    @property
    def ways_there(self) -> bytes: ...  # Of the same messages, one way from here to the other side.
    @property
    def sent(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def late(self) -> int: ...  # Answers that came after the wait for them had ended.
    @property
    def elapsed_ns(self) -> int: ...
    @property
    def is_alone(self) -> bool: ...  # The other side is no longer there.

class Pinger:
    def __init__(self, participant: Participant) -> None: ...
    def await_match(self, patience_ns: int) -> bool: ...
    def shares_memory(self) -> bool: ...  # True if the library can pass its messages through shared memory.
    def run(
        self,
        *,
        size: int,
        warm_up_ns: int,
        duration_ns: int,
        patience_ns: int,
        interval_ns: int,
        listener: bool,
        cpu: int,
    ) -> PingResult: ...

class Ponger:
    def __init__(self, participant: Participant, *, listener: bool, cpu: int) -> None: ...
    def stop(self) -> int: ...  # Ends it; returns the number of messages answered.
