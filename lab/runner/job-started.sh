#!/bin/sh
# What ACTIONS_RUNNER_HOOK_JOB_STARTED names; the runner takes only names that end with .sh, and runs it with `bash -e`.
# It belongs to root, like job-started.pyz next to it, which decides: `sh lab/runner/install` puts both there.
#
# A hook that exits with an error fails the job, but its steps with `if: always()` or `if: failure()` run all the same
# (actions/runner, issue 2811): for whoever writes the workflow, the exit status is no boundary. So a refusal ends the
# runner's worker, without which no step of the job runs; the runner reports the job as failed and takes the next one.
# The same where the decision itself cannot be had, and where the job is cancelled before there is one.
PATH=/usr/sbin:/usr/bin:/sbin:/bin

refuse() {
  trap '' INT TERM HUP
  kill -KILL "$!" 2>/dev/null || true
  [ "$1" = at-once ] || sleep 2 # until the worker has sent the output; there is no event for that
  if [ "${GITHUB_ACTIONS:-}" = true ]; then # the runner sets it for all that its worker starts
    kill -KILL "$PPID"
  else # tried by hand
    echo "not started by the runner's worker, which would have been ended" >&2
  fi
  exit 1
}

trap 'refuse at-once' INT TERM HUP
/usr/bin/python3 -I "${0%/*}/job-started.pyz" "$@" &
wait "$!" && exit 0
refuse slowly
