# shellcheck shell=sh
# What a phase did, and of which inputs: one file a phase. Sourced.

stamp_folder() { printf '%s/var/lib/ldos-lab/stamps' "$LDOS_ROOT"; }

# What a phase has done that has not ended yet.
done_file() { printf '%s/var/lib/ldos-lab/doing/%s' "$LDOS_ROOT" "$1"; }

# Of all that decides what a phase does: its own text, what it is made of, and what it names itself.
stamp_digest() {
  named=$(sh "$LAB/phases/$1" inputs) || return 1
  {
    cat "$LAB/phases/$1" "$LAB"/lib/*.sh
    printf '%s\n' "$named"
  } | sha256sum | cut -d ' ' -f 1
}

has_any_stamp() { [ -e "$(stamp_folder)/$1" ]; }

has_stamp() { grep -qsx "digest $2" "$(stamp_folder)/$1"; }

forget_stamp() { rm -f "$(stamp_folder)/$1" "$(done_file "$1")"; }

# Under a temporary name first: a stamp is whole or not there.
write_stamp() {
  mkdir -p "$(stamp_folder)"
  {
    printf 'digest %s\n' "$2"
    date -u '+finished %Y-%m-%dT%H:%M:%SZ'
    if [ -e "$(done_file "$1")" ]; then cat "$(done_file "$1")"; fi
  } >"$(stamp_folder)/$1.new"
  mv "$(stamp_folder)/$1.new" "$(stamp_folder)/$1"
  rm -f "$(done_file "$1")"
}
