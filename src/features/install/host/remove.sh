# shellcheck shell=sh

# Undoes everything, or removes only the named accounts. The configuration is removed first, because
# sshd refuses every key if its configuration names a list that does not exist.
remove() {
  refuse_other_server
  if [ -n "$account" ]; then
    for file in "$work/accounts/"*; do delete "$data/principals/${file##*/}"; done
    return 0
  fi
  test_config "$config" || fail "sshd refuses its present configuration, see above. It was left as it was: repair it, and run this again."
  remove_config
  if [ -n "$changed" ] || [ -e "$pending" ]; then
    if [ -n "$dry_run" ]; then
      say 'would reload sshd'
    else
      reload
      if [ -z "$reloaded" ]; then
        say "$data stays until then, since the running sshd reads it at each login. Afterwards, run this once more."
        return 0
      fi
    fi
  fi
  remove_units
  delete "$cron/$unit"
  delete "$program"
  remove_data
  if [ -n "$dry_run" ]; then
    say 'nothing was changed (--dry-run).'
  elif [ -n "$changed" ]; then
    say "this host has left $server."
  else
    say 'nothing to remove.'
  fi
}

remove_config() {
  cp -p "$config" "$work/before"
  owner=$(stat -c '%a %u:%g' "$config")
  if [ -d "$data" ]; then needs_reload=yes; fi
  put "$config" "$owner" plain_config
  delete "$drop_in"
  needs_reload=
  if [ -n "$changed" ] && [ -z "$dry_run" ] && ! test_config "$config"; then
    put "$config" "$owner" cat "$work/before"
    fail 'sshd refuses the configuration without our settings, see above: the former one is back.'
  fi
}

# Deletes our files, and the folders if they contain no other files.
remove_data() {
  [ -d "$data" ] || return 0
  if [ -z "$dry_run" ]; then
    exec 8<"$data"
    flock 8 # a refresh that cron has started ends first
  fi
  for file in "$data/principals/"*; do
    if [ -f "$file" ] && grep -q '^# Written by install-host.sh ' "$file"; then delete "$file"; fi
  done
  delete "$authorities"
  delete "$list"
  [ -z "$dry_run" ] || return 0
  rm -rf "$data"/.svc-refresh.* "$pending"
  for folder in "$data/principals" "$data"; do
    [ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null || say "$folder has other files, and stays."
  done
}
