# shellcheck shell=sh

# Makes this host accept the certificates of the server. All checks run before the first change, so
# that a failed check changes nothing.
join() {
  choose_schedule
  refuse_other_server
  test_config "$config" || fail "sshd refuses its present configuration, see above. It was left as it was: repair it, and run this again."
  refuse_other_settings
  fetch_authorities
  try_list
  try_config

  make_folder "$data"
  make_folder "$data/principals"
  make_folder_if_missing "$sbin"
  put "$program" '755 0:0' refresh_program
  write_list
  put "$authorities" '644 0:0' cat "$work/ca.pub"
  write_principals
  write_schedule
  write_config
  show_result
}

# Fetches the authorities, and checks that each line of them is a key and nothing else.
fetch_authorities() {
  fetch "$server/v1/credentials/ssh/ca" "$work/ca.pub"
  [ "$status" = 200 ] || fail "$server/v1/credentials/ssh/ca answered $status. Nothing was changed."
  keys=$(grep -cE '^(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/=]+( [[:print:]]*)?$' "$work/ca.pub") || true
  ssh-keygen -l -f "$work/ca.pub" >"$work/fingerprints" 2>/dev/null </dev/null || true
  if [ "$keys" = 0 ] || [ "$keys" != "$(wc -l <"$work/ca.pub" | tr -d ' ')" ] ||
    [ "$keys" != "$(wc -l <"$work/fingerprints" | tr -d ' ')" ]; then
    fail "$server/v1/credentials/ssh/ca answered with something that is no public key. Nothing was changed."
  fi
  [ -n "$ca_fingerprints" ] || return 0
  while read -r _ fingerprint _; do
    case "$ca_fingerprints " in
      *" $fingerprint "*) ;;
      *) fail "the authority of $server is $fingerprint, which no --ca-fingerprint names. Nothing was changed." ;;
    esac
  done <"$work/fingerprints"
}

# Fetches the list of revoked certificates once into a temporary folder, by the program that will
# refresh it. The list need not name one of the fetched authorities, because both come from the same
# server: after the key of the authority was replaced, the list may be about the old key only.
try_list() {
  refresh_program >"$work/svc-refresh-krl"
  mkdir "$work/try"
  sh "$work/svc-refresh-krl" "$server/v1/credentials/ssh/krl" "$work/try/revoked.krl" 9<&- ||
    fail 'the list of revoked certificates could not be fetched. Nothing was changed.'
}

# Writes the list of revoked certificates to its path, by the program that will refresh it. The list
# is written before the authorities, so that a new authority is trusted only after its revocations
# are known.
write_list() {
  if cmp -s "$work/try/revoked.krl" "$list"; then return 0; fi
  changed=yes
  if [ -n "$dry_run" ]; then
    say "would fetch $list"
    return 0
  fi
  "$program" "$server/v1/credentials/ssh/krl" "$list" 9<&- || fail 'the list could not be fetched. sshd_config was not changed.'
  label "$list"
  say "fetched $list"
}

# Checks that sshd accepts the new configuration, which is still in a temporary file.
try_config() {
  candidate_config >"$work/candidate"
  test_config "$work/candidate" || fail 'sshd refuses the new configuration, see above. Nothing was changed.'
  for file in "$work/accounts/"*; do
    name=${file##*/}
    is_effective "$work/candidate" "$name" && continue
    grep -iE '^(Bad|.*line [0-9]+:|trustedusercakeys|revokedkeys|authorizedprincipalsfile)' "$work/effective" >&2 || true
    fail "sshd would not use the new settings for the account $name, see above. Nothing was changed."
  done
}

# Prints the configuration with our block. The block is at the top, because there it is outside of
# each Match block, and sshd uses the first value of a setting.
candidate_config() {
  block
  plain_config
}

write_principals() {
  for file in "$work/accounts/"*; do
    put "$data/principals/${file##*/}" '644 0:0' principals_file "$file"
  done
}

# Prints the principals file of the account that the file $1 is about.
principals_file() {
  echo "# Written by install-host.sh of $server: the principals that may log in as ${1##*/}, one a line."
  cat "$1"
}

# Makes sshd_config name our files, and reloads sshd. If sshd does not accept the new configuration,
# the old one is restored.
write_config() {
  earlier=$changed
  changed=
  needs_reload=yes
  cp -p "$config" "$work/before"
  owner=$(stat -c '%a %u:%g' "$config")
  if has_drop_ins; then
    put "$drop_in" '644 0:0' block
    put "$config" "$owner" plain_config
  else
    put "$config" "$owner" candidate_config
    delete "$drop_in"
  fi
  needs_reload=
  if [ -z "$dry_run" ]; then
    config_works || put_back
    if [ -n "$changed" ] || [ -e "$pending" ]; then reload; fi
  fi
  changed=$earlier$changed
}

# Returns 0 if sshd accepts the written configuration and uses our settings for each account.
config_works() {
  test_config "$config" || return 1
  for file in "$work/accounts/"*; do is_effective "$config" "${file##*/}" || return 1; done
}

put_back() {
  delete "$drop_in"
  put "$config" "$owner" cat "$work/before"
  rm -f "$pending"
  fail 'sshd did not take the new configuration: the former one is back.'
}

# Prints the trusted authorities and the accounts, and warns of settings that would refuse users.
show_result() {
  while read -r _ fingerprint rest; do say "authority $fingerprint $rest"; done <"$work/fingerprints"
  for file in "$work/accounts/"*; do
    name=${file##*/}
    say "account $name: $(tr '\n' ' ' <"$file")"
    id -u "$name" >/dev/null 2>&1 || say "warning: this host has no account $name yet."
    if effective "$work/candidate" "$name" >"$work/effective"; then warn_of_settings "$name"; fi
  done
  for file in "$data/principals/"*; do
    if [ -f "$file" ] && [ ! -f "$work/accounts/${file##*/}" ]; then say "account ${file##*/}: as before"; fi
  done
  if [ -n "$dry_run" ]; then
    say 'nothing was changed (--dry-run).'
  elif [ -z "$changed" ]; then
    say 'nothing to change.'
  else
    say "this host has joined $server."
  fi
}

# Warns of settings because of which sshd would refuse the certificates of the account $1.
warn_of_settings() {
  if grep -qx 'pubkeyauthentication no' "$work/effective"; then say "warning: PubkeyAuthentication is off for $1."; fi
  if [ "$1" = root ] && grep -qx 'permitrootlogin no' "$work/effective"; then
    say 'warning: PermitRootLogin is no; prohibit-password lets root in by certificate.'
  fi
  cut -d ' ' -f 1 "$work/ca.pub" | sort -u >"$work/algorithms"
  while read -r algorithm; do
    if ! grep '^casignaturealgorithms ' "$work/effective" | grep -qE "[ ,]$algorithm(,|\$)"; then
      say "warning: CASignatureAlgorithms does not have $algorithm, the algorithm of the authority."
    fi
  done <"$work/algorithms"
}
