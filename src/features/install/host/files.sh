# shellcheck shell=sh

# Writes the output of the command $3 … into the file $1, with the mode and owner $2 ("644 0:0"). If
# the file has this content, mode and owner already, it keeps its inode and its times. Sets
# `changed` if they differ.
put() {
  target=$1
  owner_of_target=$2
  shift 2
  "$@" >"$work/content"
  put_content "$target" "$owner_of_target"
}

put_content() {
  if [ -f "$1" ] && [ ! -L "$1" ] && cmp -s "$work/content" "$1" && [ "$(stat -c '%a %u:%g' "$1")" = "$2" ]; then
    return 0
  fi
  changed=yes
  if [ -n "$dry_run" ]; then
    say "would write $1:"
    if [ -f "$1" ]; then diff "$1" "$work/content" || true; else sed 's/^/> /' "$work/content"; fi
    return 0
  fi
  temporary=$(mktemp "${1%/*}/.svc-new.XXXXXX")
  cat "$work/content" >"$temporary"
  chown "${2#* }" "$temporary"
  chmod "${2%% *}" "$temporary"
  sync "$temporary" 2>/dev/null || sync
  mark_reload
  mv -f "$temporary" "$1"
  label "$1"
  say "wrote $1"
}

# Gives the file or folder $1 the label that SELinux has for its path, if SELinux is in use.
label() {
  if command -v restorecon >/dev/null 2>&1; then restorecon -R "$1" 2>/dev/null || true; fi
}

# Makes the folder $1, in which only root may write, because sshd reads no principals from a folder
# in which another user may write.
make_folder() {
  [ ! -L "$1" ] || fail "$1 is a symbolic link. Remove it, and run this again."
  if [ -d "$1" ] && [ "$(stat -c '%a %u:%g' "$1")" = '755 0:0' ]; then return 0; fi
  changed=yes
  if [ -n "$dry_run" ]; then
    say "would make the folder $1"
    return 0
  fi
  mkdir -p "$1"
  chown 0:0 "$1"
  chmod 755 "$1"
  label "$1"
}

# Makes the folder $1 if it does not exist. An existing folder may have any mode.
make_folder_if_missing() { [ -d "$1" ] || make_folder "$1"; }

# Deletes the file or link $1.
delete() {
  [ -e "$1" ] || [ -L "$1" ] || return 0
  changed=yes
  if [ -n "$dry_run" ]; then
    say "would delete $1"
    return 0
  fi
  mark_reload
  rm -f "$1"
  say "deleted $1"
}

# Records, before a change of sshd_config, that sshd has to be reloaded. If this run is killed
# before the reload, the next run reloads sshd.
mark_reload() {
  if [ -n "$needs_reload" ]; then : >"$pending"; fi
}

# Deletes temporary files that a killed run left.
delete_left_overs() {
  [ -z "$dry_run" ] || return 0
  for folder in "$etc" "${config%/*}" "${drop_in%/*}" "$data" "$data/principals" "$sbin" "$units" "$cron"; do
    rm -f "$folder"/.svc-new.*
  done
  [ -d "$data" ] || return 0
  ( # under the lock of the refresh program, which may run just now
    flock 9
    rm -rf "$data"/.svc-refresh.*
  ) 9<"$data"
}
