"""Shared parts: errors, units, text, tracepoints, statistics."""
