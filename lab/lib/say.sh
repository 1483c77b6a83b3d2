# shellcheck shell=sh
# Messages to the user. Sourced; foreign text passes `visible` first.

LDOS_PROGRAM=${LDOS_PROGRAM:-bootstrap}

# On standard error, or, within a phase, whose standard error is the log, on descriptor 3 as well.
say() {
  printf '%s: %s\n' "$LDOS_PROGRAM" "$*" >&2
  if [ -n "${LDOS_PHASE:-}" ] && [ -z "${LDOS_DRY_RUN:-}" ]; then printf '%s: %s\n' "$LDOS_PROGRAM" "$*" >&3; fi
}

fail() {
  printf '%s: %s\n' "$LDOS_PROGRAM" "$*" >&2
  exit 1
}

# Ends the run if the machine lacks something; a dry run prints it and continues.
refuse() {
  if [ -n "${LDOS_DRY_RUN:-}" ]; then say "would refuse: $*"; else fail "$*"; fi
}

# Other programs' text without what a terminal would obey.
visible() { LC_ALL=C tr -c '\011\012\040-\176' '?'; }
