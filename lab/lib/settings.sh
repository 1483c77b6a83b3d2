# shellcheck shell=sh
# Settings of a lab machine: NAME=value, one a line, read as text and never run by a shell. Sourced.

# Name, default (- for none), and what a value must look like as a whole (an extended regular expression).
settings_table() {
  cat <<'END'
ROS2 yes (yes|no)
KERNEL_TRACING yes (yes|no)
TUNE_GOVERNOR no (yes|no)
TUNE_TURBO no (yes|no)
TUNE_SMT no (yes|no)
TUNE_SWITCHES no (yes|no)
IRQ_CPUS - ([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)?
ISOLATED_CPUS - ([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)?
RUNNER_SCOPE - (repos/[A-Za-z0-9-]+/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*|orgs/[A-Za-z0-9-]+)?
RUNNER_GROUP_ID 1 [0-9]{1,9}
RUNNER_LABELS ldos-lab [A-Za-z0-9._-]{1,64}(,[A-Za-z0-9._-]{1,64}){0,9}
RUNNER_VERSION - ([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})?
RUNNER_SHA256 - ([0-9a-f]{64})?
MIN_FREE_GIB 20 [0-9]{1,5}
HEALTH_STRICT no (yes|no)
END
}

# Those of a file, checked, with the defaults of those that are missing; all defaults if there is no such file.
read_settings() {
  if [ -e "$1" ]; then
    [ -z "$(find "$1" -perm /022)" ] || fail "$1 can be written by others than its owner: chmod go-w $1"
    check_settings "$1"
  else
    settings_table | while read -r name default _; do print_setting "$name" "$default"; done
  fi
}

print_setting() {
  if [ "$2" = - ]; then printf '%s=\n' "$1"; else printf '%s=%s\n' "$1" "$2"; fi
}

check_settings() {
  number=0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in '' | '#'*) ;; *) check_line "$1 line $number" "$line" ;; esac
  done <"$1"
  settings_table | while read -r name default _; do
    case $(grep -c "^$name=" "$1") in
      0) print_setting "$name" "$default" ;;
      1) grep "^$name=" "$1" ;;
      *) fail "$1: $name is set more than once" ;;
    esac
  done
}

check_line() {
  name=${2%%=*}
  case $2 in *=*) ;; *) fail "$1: not NAME=value: $(printf '%s' "$2" | visible)" ;; esac
  pattern=
  settings_names=
  while read -r known _ known_pattern; do
    settings_names="$settings_names $known"
    [ "$known" != "$name" ] || pattern=$known_pattern
  done <<END
$(settings_table)
END
  [ -n "$pattern" ] || fail "$1: no setting $(printf '%s' "$name" | visible); there are:$settings_names"
  printf '%s\n' "${2#*=}" | LC_ALL=C grep -Eqx -e "$pattern" ||
    fail "$1: $name cannot be '$(printf '%s' "${2#*=}" | visible)'; it must be $(settings_form "$name")"
}

# What a value must look like, in words, with an example.
settings_form() {
  case $1 in
    IRQ_CPUS | ISOLATED_CPUS) echo "numbers of CPUs such as 2-3 or 0,2" ;;
    RUNNER_SCOPE) echo "orgs/NAME or repos/OWNER/NAME, such as orgs/acme" ;;
    RUNNER_GROUP_ID) echo "the group's number, such as 5" ;;
    RUNNER_LABELS) echo "at most ten names with commas between them, such as ldos-lab,ldos-lab-c6525-25g" ;;
    RUNNER_VERSION) echo "three numbers such as 2.336.0" ;;
    RUNNER_SHA256) echo "64 digits 0-9 and a-f, as sha256sum prints them" ;;
    MIN_FREE_GIB) echo "a whole number of GiB such as 20" ;;
    *) echo "yes or no" ;;
  esac
}

# The value of one that was read.
setting() { printf '%s\n' "$LDOS_SETTINGS" | sed -n "s/^$1=//p"; }
