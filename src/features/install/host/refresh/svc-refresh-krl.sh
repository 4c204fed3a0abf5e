#!/bin/sh
# Fetches the list of revoked SSH certificates, the RevokedKeys of sshd, from @BASE_URL@.
# Usage: svc-refresh-krl URL LIST [AUTHORITIES]
#
# On any failure the present list stays, one line of standard error says why, and the exit status is
# not 0.
# This file was written by install-host.sh, and the next run of install-host.sh replaces it.
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

# Prints the fingerprints of the authorities whose revocations the list $1 contains, one on each
# line.
authorities_of() {
  ssh-keygen -Q -l -f "$1" </dev/null 2>/dev/null |
    sed -n 's/^# CA key [^ ]* \(SHA256:[^ ]*\).*/\1/p' | sort -u
}

# Compares the authorities whose revocations the list $1 contains with the trusted authorities in
# the file $2. Sets `ours` to one that is trusted, and `unknown` to one that is not; empty if there
# is none.
sort_authorities() {
  authorities_of "$1" >"$work/authorities"
  ssh-keygen -l -f "$2" </dev/null 2>/dev/null >"$work/trusted"
  ours=
  unknown=
  while read -r fingerprint; do
    if grep -qF " $fingerprint " "$work/trusted"; then ours=$fingerprint; else unknown=$fingerprint; fi
  done <"$work/authorities"
}

# Checks that the list $1 is about a trusted authority, one of the file $2, because the list of
# another authority does not contain the revocations of ours. A list about no authority revokes
# nothing, and is accepted. While the key of the authority is being replaced, the list is about
# several authorities, and this host may not know all of them. Afterwards the list may be about the
# old one only. Such a list is accepted only if there is a present list $3, and it has no revocation
# of a trusted authority.
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

# Removes the temporary files. The trap for EXIT calls it, also after a signal.
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
