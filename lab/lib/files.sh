# shellcheck shell=sh
# Files of the system: written only if they differ, and kept as they were before. Sourced; places are absolute, and
# below LDOS_ROOT.

before_folder() { printf '%s/var/lib/ldos-lab/before' "$LDOS_ROOT"; }

# Once a place: the first content is what was there before us.
keep_before() {
  kept=$(before_folder)$1
  if [ -e "$kept" ] || [ -e "$kept.absent" ]; then return 0; fi
  mkdir -p "$(dirname "$kept")"
  if [ -e "$LDOS_ROOT$1" ]; then cp -p "$LDOS_ROOT$1" "$kept"; else : >"$kept.absent"; fi
}

# install_file SOURCE PLACE MODE: root's, under a temporary name first.
install_file() {
  if cmp -s "$1" "$LDOS_ROOT$2"; then return 0; fi
  if [ -n "$LDOS_DRY_RUN" ]; then
    say "  would write $2 (mode $3)"
    return 0
  fi
  keep_before "$2"
  mkdir -p "$(dirname "$LDOS_ROOT$2")"
  cp "$1" "$LDOS_ROOT$2.new"
  chown root:root "$LDOS_ROOT$2.new"
  chmod "$3" "$LDOS_ROOT$2.new"
  mv "$LDOS_ROOT$2.new" "$LDOS_ROOT$2"
  note "wrote $2"
}

# write_file PLACE MODE TEXT; as install_file.
write_file() {
  content=$(mktemp)
  printf '%s\n' "$3" >"$content"
  install_file "$content" "$1" "$2"
  rm -f "$content"
}

# Whether what was there before us is kept.
is_ours() { [ -e "$(before_folder)$1" ] || [ -e "$(before_folder)$1.absent" ]; }

# restore_file PLACE [COMMAND…]: what was there before is put back, then the command run; only then it is forgotten,
# so that one which fails is run again.
restore_file() {
  is_ours "$1" || return 0
  kept=$(before_folder)$1
  place=$1
  shift
  if [ -n "$LDOS_DRY_RUN" ]; then
    say "  would put back $place"
  else
    if [ -e "$kept" ]; then cp -p "$kept" "$LDOS_ROOT$place"; else rm -f "$LDOS_ROOT$place"; fi
    say "$place: as before"
  fi
  if [ $# -gt 0 ]; then run "$@"; fi
  [ -n "$LDOS_DRY_RUN" ] || rm -f "$kept" "$kept.absent"
}

# Digests of files, for the inputs of a phase.
digests() { for file; do [ ! -f "$file" ] || sha256sum <"$file"; done; }
