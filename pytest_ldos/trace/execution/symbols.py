"""Human-readable names of C++ functions."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

_MANGLED: Final = "_Z"


def demangle(symbol: str) -> str:
    """Readable form of a mangled C++ name; any other text unchanged.

    tracetools demangles what it can. Names that the linker knows in mangled form only, and
    traces of other recorders, are demangled here by the C++ runtime.
    """
    if not symbol.startswith(_MANGLED):
        return symbol
    status = ctypes.c_int(-1)
    readable = _demangler()(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not readable:
        return symbol
    try:
        return ctypes.string_at(readable).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(readable))


@cache
def _demangler() -> Any:
    """Demangling function of the C++ runtime that the decoder is linked with."""
    function = getattr(ctypes.CDLL("libstdc++.so.6"), "__cxa_demangle")
    function.restype = ctypes.c_void_p
    return function
