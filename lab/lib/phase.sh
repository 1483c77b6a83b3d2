# shellcheck shell=sh
# What phases are made of. Sourced by each, which defines `describe`, `inputs`, `apply` and `undo`
# and ends with `run_phase "$@"`.

set -eu
LDOS_PHASE=$(basename "$0")
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$LAB/lib/say.sh"
# shellcheck source-path=SCRIPTDIR source=settings.sh
. "$LAB/lib/settings.sh"
# shellcheck source-path=SCRIPTDIR source=stamps.sh
. "$LAB/lib/stamps.sh"
# shellcheck source-path=SCRIPTDIR source=files.sh
. "$LAB/lib/files.sh"

run_phase() {
  case $1 in
    describe | inputs | apply | undo) "$1" ;;
    *) fail "a phase is run by lab/bootstrap" ;;
  esac
}

# Notes for the stamp what was done.
note() {
  mkdir -p "$(dirname "$(done_file "$LDOS_PHASE")")"
  printf 'did %s\n' "$*" >>"$(done_file "$LDOS_PHASE")"
}

# Runs a command, or shows it.
run() {
  if [ -n "$LDOS_DRY_RUN" ]; then
    say "  would run: $*"
  else
    printf '+ %s\n' "$*"
    "$@" || return
    note "ran $*"
  fi
}

is_set() { [ "$(setting "$1")" = yes ]; }

has_package() {
  dpkg-query --show --showformat '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

# Those of the given packages that are not there.
install_packages() {
  missing=
  for package; do has_package "$package" || missing="$missing $package"; done
  # shellcheck disable=SC2086 # one word a package
  [ -z "$missing" ] || run env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

# One CPU a line, of a list as the kernel writes it: 0,2-4.
expand_cpus() {
  for part in $(printf '%s' "$1" | tr ',' ' '); do seq "${part%-*}" "${part#*-}"; done
}
