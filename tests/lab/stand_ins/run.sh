#!/bin/bash
exec "$(dirname "$0")/bin/Runner.Listener" run
