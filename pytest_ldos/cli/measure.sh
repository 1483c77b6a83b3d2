#!/bin/sh
# Measures a commit, interleaved with a base where there is one, and leaves what came of it in results/.
# Usage: ldos measure [pack]
#
# The gate of every CI calls this: GitHub's workflows, and the recipes in examples/ci. It runs in the root of a project, whose
# tests, scenarios and settings measure, with pytest-ldos of the checkout that this belongs to: the same, or one elsewhere. Of
# the commit comes the stack alone. What was in results/ before is removed.
#
# GATE_STACK      ros2, embedded, or both. Empty: what [tool.ldos.stack] says, else what /etc/ldos-lab/stack says
#                 (lab/bootstrap writes it), else ros2 where it is sourced or in /opt/ros, else embedded. On ros2 the workspaces of
#                 both versions are built ([tool.ldos.base]). A stack that cannot be measured is infra; no other takes its place.
#                 Both are measured one after the other into one report; the worse verdict is that of the commit.
# GATE_COMMIT     the commit, 40 hexadecimal digits; `ldos measure` needs it only for another than what is checked out
# GATE_BASE       a revision to take turns with; empty: the baseline that is stored. 40 zeros (a new branch): the parent of
#                 the commit
# GATE_FROM       folder of another checkout, with the whole history: the commit and the base are fetched from there where this
#                 repository lacks them
# GATE_SCENARIOS  names, separated by spaces (baseline cpu_load msg_load cpu_limit)
# GATE_TRIALS     measured trials of each (10), and
# GATE_MAX_TRIALS up to which some are added while a comparison is undecided (30)
# GATE_MINUTES    time limit of the job [min]: what would take longer, by a rough estimate without builds, is refused
#                 before anything is measured; empty: none
# GATE_RECORD     true: record the commit as the baseline, compare with nothing
# GATE_BIN        folder of the programs python and ldos, which `ldos measure` sets to its own; empty: `make setup` makes .venv,
#                 and `make ros2-setup`, called with ROS 2 sourced, .venv-ros2, in the checkout that this belongs to
#
# results/result.json, report.html    the report, for programs and for people
# results/traces/*.pftrace            the traces that were kept (of what failed or regressed), for Perfetto
# results/baselines/                  with GATE_RECORD: what a maintainer commits as baselines/
# results/junit.xml                   what pytest says of its tests; of both stacks in results/ros2/ and results/embedded/
#
# Its exit status is pytest's: 10 regressed, 11 invalid or infra, 12 no verdict; of two stacks that of the worse, which is the
# smaller (pytest_ldos/base/exit_codes.py). LDOS_ROOT, for tests: the folder below which /etc/ldos-lab and /opt/ros are looked for.
#
# Called as `ldos measure pack`, it measures nothing, but puts together what jobs on other machines read, an artifact each.
# The artifact's name says which machine it is of; nothing in it does.
#
# PAGE_URL, TRACE_URL    where the report's page and the traces lie
#
# results/packed/result/{result.json,page-url,trace-url}
# results/packed/trials/RUN/SCENARIO/…     the records, for the history
# results/packed/baselines/…
set -eu

say() { printf 'measure: %s\n' "$*" >&2; }
fail() { say "$@"; exit 2; }

is_commit() {
  case $1 in *[!0-9a-f]*) return 1 ;; esac
  [ "${#1}" -eq 40 ]
}

is_number() {
  case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# The commit of a revision; nothing that is given can be taken for an option.
commit_of() {
  git rev-parse --verify --quiet --end-of-options "$1^{commit}"
}

# Without its whole history, a commit of GATE_FROM would leave a gap here.
require_from() {
  [ -n "$from" ] || return 0
  case $from in /*) ;; *) from=$PWD/$from ;; esac
  [ -d "$from" ] || fail "GATE_FROM is no folder"
  [ "$(git -C "$from" rev-parse --is-shallow-repository)" = false ] || fail "GATE_FROM is no checkout with the whole history"
}

# The commit of a revision of GATE_FROM, which is fetched from there.
fetched() {
  [ -n "$from" ] || return 1
  missing=$(git -C "$from" rev-parse --verify --quiet --end-of-options "$1^{commit}") || return 1
  git fetch --quiet --no-tags --no-recurse-submodules --no-write-fetch-head "$from" "$missing" >&2 || return 1
  commit_of "$missing"
}

require_commit() {
  is_commit "$commit" || fail "GATE_COMMIT is no commit: give its 40 hexadecimal digits"
  { commit_of "$commit" || fetched "$commit"; } >/dev/null ||
    fail "GATE_COMMIT is no commit here; fetch it, or name a checkout that has it (GATE_FROM)"
}

find_base() {
  case $base in
    '') return 0 ;;
    0000000000000000000000000000000000000000) base=$commit~1 ;;
  esac
  # A checkout of a commit has branches of its origin alone.
  of_origin=refs/remotes/origin/$base
  base=$(commit_of "$base" || commit_of "$of_origin" || fetched "$base" || fetched "$of_origin") ||
    fail "GATE_BASE is no revision here; fetch the whole history"
}

# Names of scenarios as an expression of markers.
choose() {
  expression=
  for name in $scenarios; do
    case $name in *[!a-z0-9_+]*) fail "GATE_SCENARIOS holds what is no name of a scenario" ;; esac
    expression="${expression:+$expression or }$name"
  done
  [ -n "$expression" ] || fail "GATE_SCENARIOS names no scenario"
}

# What [tool.ldos.stack] says: a kind of stack, or nothing. A launch file of one's own is ROS 2's.
configured_stack() {
  python3 -I -c '
import pathlib, tomllib
own, shared = pathlib.Path("ldos.toml"), pathlib.Path("pyproject.toml")
table = tomllib.loads(own.read_text("utf-8-sig")) if own.is_file() else {}
if not own.is_file() and shared.is_file():
    table = tomllib.loads(shared.read_text("utf-8-sig")).get("tool", {}).get("ldos", {})
stack = table.get("stack", {})
print(stack if isinstance(stack, str) else stack.get("kind", "ros2" if "launch_file" in stack else ""))
' 2>/dev/null || fail "[tool.ldos.stack] cannot be read; Python 3.11 or later is needed, and a valid file"
}

# Starts for $1 trials where a version has $2 in all, at most $3 starts with $4 trials or more each; see
# pytest_ldos/campaign/order.py.
starts_of() {
  size=$((($2 + $3 - 1) / $3))
  [ "$size" -ge "$4" ] || size=$4
  echo $((($1 + size - 1) / size))
}

# Rough seconds of all trials that may be made, and of the starts of the stack with their warm-up: a guess, because nothing
# is installed yet that could read what earlier runs took. See pytest_ldos/campaign/estimate.py.
estimate_s() {
  most=$trials
  [ "$max_trials" -le "$most" ] || [ "$record" = true ] || most=$max_trials
  versions=1
  starts=$(starts_of "$most" "$most" 6 4)
  if [ -n "$base" ]; then
    versions=2
    starts=$(($(starts_of "$trials" "$trials" 15 2) + $(starts_of $((most - trials)) "$most" 15 2)))
  fi
  # shellcheck disable=SC2086 # one word a scenario
  set -- $scenarios
  scenarios_s=$(($# * versions * (starts * 22 + most * 9) / 2))
  # shellcheck disable=SC2086 # one word a stack
  set -- $stacks
  echo $(($# * scenarios_s))
}

require_time() {
  [ -n "$minutes" ] || return 0
  is_number "$minutes" || fail "GATE_MINUTES is no number"
  needed=$((($(estimate_s) + 59) / 60))
  [ "$needed" -le "$minutes" ] ||
    fail "this may take about $needed min, and the job has $minutes: give fewer scenarios or trials (GATE_MAX_TRIALS)"
}

is_sourced() { [ -n "${ROS_DISTRO:-}" ] && [ -n "${AMENT_PREFIX_PATH:-}" ]; }

# The setup script of the newest ROS 2 in /opt/ros; nothing where there is none.
ros2_setup() {
  find "${LDOS_ROOT:-}/opt/ros" -mindepth 2 -maxdepth 2 -name setup.sh 2>/dev/null | LC_ALL=C sort | tail -n 1
}

# The stack of this machine: what its bootstrap chose, else ROS 2 where there is one.
machine_stack() {
  if [ -r "${LDOS_ROOT:-}/etc/ldos-lab/stack" ]; then
    head -n 1 "${LDOS_ROOT:-}/etc/ldos-lab/stack"
  elif is_sourced || [ -n "$(ros2_setup)" ]; then
    echo ros2
  else
    echo embedded
  fi
}

choose_stack() {
  [ -n "$stack" ] || stack=$(configured_stack) || exit
  case $stack in '' | auto) stack=$(machine_stack) ;; esac
  case $stack in
    ros2 | embedded) stacks=$stack ;;
    both) stacks="ros2 embedded" ;;
    *) fail "the stack is neither ros2 nor embedded nor both: see GATE_STACK" ;;
  esac
}

source_ros2() {
  ros=$(ros2_setup)
  is_sourced || [ -z "$ros" ] || source_script "$ros"
}

# Sets $tools to the folder of the checkout that this belongs to, with a slash behind it; empty where that is this one.
find_tools() {
  tools=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)/
  [ "$tools" != "$(pwd -P)/" ] || tools=
}

# Sets the environment of a stack up: that of `ldos measure` itself, or one that a target of make makes. Where ROS 2 is not
# there, that of the embedded stack does: in it, pytest reports what is missing, and nothing else is measured.
set_up() {
  [ "$stack" != ros2 ] || source_ros2
  if [ -n "${GATE_BIN:-}" ]; then
    bin=$GATE_BIN
  elif [ "$stack" = ros2 ] && is_sourced; then
    make_environment ros2-setup .venv-ros2 || return
  else
    make_environment setup .venv || return
  fi
  # A project that pytest-ldos is no part of lacks the ROS packages that it brings.
  if [ "$stack" = ros2 ] && is_sourced && [ -n "${GATE_BIN:-}$tools" ]; then source_ours || return; fi
}

make_environment() {
  bin=$tools$2/bin
  make ${tools:+--no-print-directory -C "$tools"} "$1" || { say "make $1 failed: the $stack stack cannot be measured"; return 11; }
}

# Programs of pytest-ldos for the user's stack: what of them the sourced prefixes lack is built.
source_ours() {
  ours=$("$bin/ldos" ros-packages) || { say "the packages of pytest-ldos cannot be built"; return 11; }
  [ -z "$ours" ] || source_script "$ours"
}

# Setup scripts of ROS 2 read variables that are not set.
source_script() {
  say "sourcing $1"
  set +euf
  # shellcheck disable=SC1090
  . "$1"
  set -euf
}

runs() {
  [ ! -d .ldos/runs ] || find .ldos/runs -mindepth 1 -maxdepth 1 -type d
}

# What is below runs that were not there before this measurement; below all of them where this script did not begin one.
of_this_measurement() {
  runs | { grep -Fxv -f "$before" || true; } | while IFS= read -r run; do find "$run" "$@"; done
}

export_traces() {
  mkdir -p results/traces
  count=0
  of_this_measurement -type d -name trace | sort >results/.traces
  while IFS= read -r trace; do
    count=$((count + 1))
    [ "$count" -le 6 ] || { say "more than 6 traces were kept; the others stay on this machine"; break; }
    "$bin/ldos" export "$trace" --to perfetto --output "results/traces/$count.pftrace" </dev/null ||
      say "a trace could not be exported: $trace"
  done <results/.traces
  rm results/.traces
}

# Measures the stack into a folder; in a shell of its own, in which its environment ends.
measure_stack() (
  results=$1
  shift
  mkdir -p "$results"
  set_up || exit
  if [ -n "$head" ]; then
    set -- "$@" "--ldos-head=$head"
  elif [ "$stack" = ros2 ]; then
    set -- "$@" --ldos-build
  fi
  measured=0
  "$bin/python" -m pytest -m "$expression" --ldos-trials "$trials" "$@" "--ldos-stack=$stack" \
    --ldos-report "$results/result.json" --ldos-report "$results/report.html" --junitxml "$results/junit.xml" || measured=$?
  if [ "$measured" -eq 0 ] && [ ! -s "$results/result.json" ]; then
    say "nothing was measured"
    measured=11
  fi
  exit "$measured"
)

# Notes the exit status of a stack: of those that are not 0, the smaller is the worse.
note() {
  if [ "$1" -ne 0 ] && { [ "$status" -eq 0 ] || [ "$1" -lt "$status" ]; }; then status=$1; fi
}

# The programs of pytest-ldos, of the environment of the stack that was measured last where that could be made.
find_bin() {
  bin=${GATE_BIN:-}
  [ -z "$bin" ] || return 0
  made=".venv .venv-ros2"
  [ "$stack" != ros2 ] || made=".venv-ros2 .venv"
  for venv in $made; do
    bin=$tools$venv/bin
    [ ! -x "$bin/ldos" ] || return 0
  done
}

pack() {
  rm -rf results/packed
  if [ -s results/result.json ]; then
    mkdir -p results/packed/result
    cp results/result.json results/packed/result/
    printf '%s\n' "${PAGE_URL:-}" >results/packed/result/page-url
    printf '%s\n' "${TRACE_URL:-}" >results/packed/result/trace-url
  fi
  of_this_measurement -type f -name trials.json >results/.records
  while IFS= read -r record; do
    place=results/packed/trials/${record#.ldos/runs/}
    mkdir -p "$(dirname "$place")"
    cp "$record" "$place"
  done <results/.records
  rm results/.records
  if [ -d results/baselines ]; then
    mkdir -p results/packed
    cp -R results/baselines results/packed/baselines
  fi
}

before=/dev/null
case ${1:-} in
  '') ;;
  -h | --help)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
    exit
    ;;
  pack)
    [ ! -e results/.before ] || before=results/.before
    mkdir -p results
    pack
    exit
    ;;
  *) fail "usage: ldos measure [pack]" ;;
esac

commit=${GATE_COMMIT:-}
base=${GATE_BASE:-}
from=${GATE_FROM:-}
scenarios=${GATE_SCENARIOS:-baseline cpu_load msg_load cpu_limit}
trials=${GATE_TRIALS:-10}
max_trials=${GATE_MAX_TRIALS:-30}
record=${GATE_RECORD:-false}
stack=${GATE_STACK:-}
minutes=${GATE_MINUTES:-}

require_from
require_commit
find_tools
# The commit gets an environment of its own where it is not checked out, and where this belongs to another checkout.
head=$commit
if [ "$(commit_of HEAD)" = "$commit" ] && { [ -z "$tools" ] || [ -n "${GATE_BIN:-}" ]; }; then head=; fi
is_number "$trials" || fail "GATE_TRIALS is no number"
is_number "$max_trials" || fail "GATE_MAX_TRIALS is no number"
choose
choose_stack
say "the stack is $(echo "$stacks" | sed 's/ / and /')"
set -f # words of ours only from here on
if [ "$record" = true ]; then
  # No baseline is found there, so that all are recorded in the machine's own store; that there is none is no fault.
  set -- --ldos-update-baseline --ldos-baselines results/none
  if [ -d .ldos/baselines ]; then
    aside=.ldos/baselines-before-$(date +%Y%m%d-%H%M%S)
    mv .ldos/baselines "$aside"
    say "the baselines of this machine were moved to $aside: all are recorded again"
  fi
  LDOS_STRICT=0
  export LDOS_STRICT
else
  find_base
  set -- --ldos-max-trials "$max_trials"
  [ -z "$base" ] || set -- "$@" "--ldos-base=$base"
  # Machines of one class share what a maintainer committed.
  set -- "$@" --ldos-baselines=baselines
fi

require_time
rm -rf results
mkdir results
before=results/.before
runs >"$before"
status=0
for stack in $stacks; do
  if [ "$stack" = "$stacks" ]; then place=results; else place=results/$stack; fi
  measured=0
  measure_stack "$place" "$@" || measured=$?
  note "$measured"
done
find_bin
if [ "$stack" != "$stacks" ]; then
  "$bin/ldos" join ros2=results/ros2/result.json embedded=results/embedded/result.json \
    --output results/result.json --output results/report.html || note 11
fi
export_traces
if [ "$record" = true ] && [ -d .ldos/baselines ]; then
  # What a maintainer has pinned and what was calibrated stays as it is.
  cp -R .ldos/baselines results/baselines
  find results/baselines -name '*.*.json' -type f -exec rm '{}' ';'
fi
exit "$status"
