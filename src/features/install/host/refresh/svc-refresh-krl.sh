#!/bin/sh
# Fetches the list of revoked SSH certificates, the RevokedKeys of sshd, from @BASE_URL@.
# Usage: svc-refresh-krl URL LIST [AUTHORITIES]
#
# On any failure the present list stays, one line of standard error says why, and the exit status is not 0.
# Written by install-host.sh, which also writes it again.
set -eu
umask 022
LC_ALL=C
export LC_ALL

fail() {
  echo "svc-refresh-krl: $* The present list stays." >&2
  exit 1
}

#include refresh/fetch.sh
#include refresh/list.sh

# Names the authorities that the list $1 is about, one a line.
authorities_of() {
  ssh-keygen -Q -l -f "$1" </dev/null 2>/dev/null |
    sed -n 's/^# CA key [^ ]* \(SHA256:[^ ]*\).*/\1/p' | sort -u
}

# Sets ours and unknown to an authority of the file $2, and to another one, that the list $1 is about.
sort_authorities() {
  authorities_of "$1" >"$work/authorities"
  ssh-keygen -l -f "$2" </dev/null 2>/dev/null >"$work/trusted"
  ours=
  unknown=
  while read -r fingerprint; do
    if grep -qF " $fingerprint " "$work/trusted"; then ours=$fingerprint; else unknown=$fingerprint; fi
  done <"$work/authorities"
}

# Checks that the list $1 is about an authority of the file $2, or about none while nothing is revoked: the list of another
# authority does not have the revocations of ours. During a rotation the list is about several, and this host may not know all.
# After one it may be about a retired authority alone. It is taken then where the present list $3 has no revocation of ours.
is_about() {
  [ -n "$2" ] || return 0
  if [ -n "$present" ]; then
    sort_authorities "$3" "$2"
    had=$ours
  else
    had=unknown
  fi
  sort_authorities "$1" "$2"
  [ -n "$ours" ] || [ -z "$unknown" ] || [ -z "$had" ] || return 1
  [ -z "$unknown" ] || [ -z "$ours" ] || echo "svc-refresh-krl: the list is also about $unknown, which this host does not trust: run install-host.sh again." >&2
}

# Removes the temporary files. A signal ends the program by way of this function.
clean_up() { rm -rf "${work:?}"; }

main() {
  if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo 'usage: svc-refresh-krl URL LIST [AUTHORITIES]' >&2
    exit 2
  fi
  url=$1
  list=$2
  folder=${list%/*}
  for program in ssh-keygen flock od; do
    command -v "$program" >/dev/null 2>&1 || fail "$program is not installed."
  done
  [ -d "$folder" ] || fail "the folder $folder does not exist."
  exec 9<"$folder"
  flock 9 || fail "$folder could not be locked."
  rm -rf "$folder"/.svc-refresh.*
  work=$(mktemp -d "$folder/.svc-refresh.XXXXXX") || fail "$folder cannot be written."
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM

  tag=
  if present=$(number_of "$list"); then
    if command -v sha256sum >/dev/null 2>&1; then tag=$(sha256sum <"$list" | cut -c 1-64); fi
  else
    present= # a missing or damaged list is replaced by any whole one
  fi
  new=$work/list
  fetch "$url" "$new" "$tag"
  if [ "$status" = 304 ] && [ -n "$tag" ]; then exit 0; fi
  [ "$status" = 200 ] || fail "$url answered $status."
  number=$(number_of "$new") || fail "$url answered with something that is no list of revoked keys."
  if [ -n "$present" ] && expr "x$number" \< "x$present" >/dev/null; then
    fail "$url answered with an older list ($((0x$number)), the present one is $((0x$present)))."
  fi
  is_about "$new" "${3-}" "$list" || fail "$url answered with the list of another authority: run install-host.sh again."
  if cmp -s "$new" "$list"; then exit 0; fi
  chmod 0644 "$new"
  sync "$new" 2>/dev/null || sync
  mv -f "$new" "$list" || fail "$list cannot be written."
}

main "$@"
