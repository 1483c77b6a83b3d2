"""Parts that every wing may use: errors, units, text, tracepoints, statistics."""
