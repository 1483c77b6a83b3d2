"""The outcome of an action's goal, by the server's answer and by the number in its result."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from pytest_ldos.robot.stack.goals import OutcomeClass

REJECTED: Final = (OutcomeClass.ABORTED, "the server rejected the goal")

_GOOD_NAMES: Final = ("NONE", "SUCCESS", "SUCCESSFUL")
_TEXTS: Final = ("error_string", "error_msg")


def judge_end(status: str, result: Any, success_codes: Collection[int]) -> tuple[OutcomeClass, str]:
    """Returns the outcome of a goal that was accepted, and why it is no success.

    Args:
        status: ``succeeded``, ``aborted``, ``canceled``, …
        result: the result's message.
        success_codes: numbers that are a success; empty for those that the type names so, or 0 without any.
    """
    if status != "succeeded":
        return OutcomeClass.ABORTED, f"the goal ended as {status}{_details(result)}"
    code = _error_code(result)
    if code is None or code in (set(success_codes) or _good_codes(result)):
        return OutcomeClass.SUCCESS, ""
    return OutcomeClass.ABORTED, f"the goal succeeded, but its result says otherwise{_details(result)}"


def _error_code(result: Any) -> int | None:
    """The number in `error_code`, or in `error_code.val` as MoveIt has it; ``None`` if the type has none."""
    code = getattr(result, "error_code", None)
    value = getattr(code, "val", code)
    return value if isinstance(value, int) else None


def _good_codes(result: Any) -> set[int]:
    """Codes that the type names a success; 0 if it names none."""
    kind = result.error_code if hasattr(result.error_code, "val") else result
    return {getattr(kind, name) for name in _GOOD_NAMES if hasattr(kind, name)} or {0}


def _details(result: Any) -> str:
    code = _error_code(result)
    text = next((str(getattr(result, name)) for name in _TEXTS if getattr(result, name, "")), "")
    parts = ([] if code is None else [f"error code {code}"]) + ([text] if text else [])
    return f" ({', '.join(parts)})" if parts else ""
