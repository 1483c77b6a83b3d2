"""What a worker of ours begins with: Ctrl-C is for whoever started it, who then ends it.

Dask loads it into each worker, also into those that take the place of others.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
