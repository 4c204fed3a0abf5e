# shellcheck shell=sh

# Prints the settings in the sshd configuration file $1, and in the files that it includes, that
# could compete with ours. Match blocks are included. Each line is "keyword<tab>file and
# line<tab>value". The lines that this script wrote are left out. The function runs in a subshell,
# because it calls itself; $2 is the depth of the calls.
settings_of() (
  [ "$2" -le 16 ] && [ -r "$1" ] && [ "$1" != "$drop_in" ] || exit 0
  awk '
    /^# BEGIN svc / { own = 1 }
    !own {
      line = $0
      gsub(/["\r]/, "", line)
      sub(/^[ \t\f]+/, "", line)
      keyword = tolower(line)
      sub(/[ \t\f=].*/, "", keyword)
      value = substr(line, length(keyword) + 1)
      sub(/^[ \t\f=]+/, "", value)
      if (keyword ~ /^(include|trustedusercakeys|revokedkeys|authorizedprincipals(file|command))$/)
        print keyword "\t" FILENAME " line " FNR "\t" value
    }
    /^# END svc$/ { own = 0 }
  ' "$1" | while IFS='	' read -r keyword place value; do
    if [ "$keyword" != include ]; then
      printf '%s\t%s\t%s\n' "$keyword" "$place" "$value"
      continue
    fi
    for pattern in $value; do
      for included in $(in_etc_ssh "$pattern"); do settings_of "$included" $(($2 + 1)); done
    done
  done
)

# Prints the paths that match the pattern $1 of an Include. sshd resolves a relative pattern from
# /etc/ssh, even if its configuration file is in another folder.
in_etc_ssh() {
  # shellcheck disable=SC2086 # the shell is to expand the pattern
  case $1 in
    /*) echo $1 ;;
    *) echo /etc/ssh/$1 ;;
  esac
}

# Refuses a host whose configuration has one of our settings already, because sshd uses the first
# value of a setting, or the value in a Match block, which may be the other one.
refuse_other_settings() {
  settings_of "$config" 0 >"$work/settings"
  [ -s "$work/settings" ] || return 0
  echo 'install-host: the configuration of sshd has settings that would compete with those of this script:' >&2
  while IFS='	' read -r keyword place value; do echo "  $place: $keyword $value" >&2; done <"$work/settings"
  fail "nothing was changed. Delete these lines if $server is to replace them, and run this again. To keep them, add the authority, the
list and the principals to the files that they name: docs/operations/ssh.md, \"By hand\"."
}

# Refuses a host that accepts the certificates of another server, because this script would replace
# that server without a warning.
refuse_other_server() {
  other=$(sed -n 's/^# BEGIN svc (\(.*\)): .*/\1/p' "$config" "$drop_in" 2>/dev/null | grep -vxF -e "$server" | head -n 1) || true
  [ -z "$other" ] || fail "this host has joined $other. Undo that first: curl -fsS $other/install-host.sh | sh -s -- --remove"
  if [ -e "$drop_in" ] && ! grep -q '^# BEGIN svc ' "$drop_in"; then
    fail "$drop_in is not from this script. Rename it, and run this again. Nothing was changed."
  fi
  begins=$(grep -c '^# BEGIN svc ' "$config") || true
  ends=$(grep -c '^# END svc$' "$config") || true
  if [ "$begins" != "$ends" ] || [ "$begins" -gt 1 ] ||
    { [ "$begins" = 1 ] && ! sed -n '/^# BEGIN svc /,$p' "$config" | grep -q '^# END svc$'; }; then
    fail "$config has a block '# BEGIN svc' that does not end with '# END svc'. Repair it by hand. Nothing was changed."
  fi
}

# Prints our settings.
block() {
  cat <<END
# BEGIN svc ($server): written by install-host.sh, which also removes it (--remove)
TrustedUserCAKeys $authorities
RevokedKeys $list
AuthorizedPrincipalsFile $data/principals/%u
# END svc
END
}

# Prints the configuration without our block.
plain_config() { sed '/^# BEGIN svc /,/^# END svc$/d' "$config"; }

# Returns 0 if sshd_config includes the drop-in before any Match block.
has_drop_ins() {
  [ -d "${drop_in%/*}" ] || return 1
  awk '
    { line = tolower($0); gsub(/["\r]/, "", line); sub(/^[ \t\f]+/, "", line) }
    line ~ /^match[ \t\f=]/ { exit }
    line ~ /^include[ \t\f=]/ {
      line = $0
      gsub(/["\r]/, "", line)
      sub(/^[ \t\f]*[A-Za-z]+[ \t\f=]+/, "", line)
      print line
    }
  ' "$config" >"$work/includes"
  set -f
  while read -r patterns; do
    for pattern in $patterns; do
      case $pattern in /*) ;; *) pattern=/etc/ssh/$pattern ;; esac
      # shellcheck disable=SC2254 # the pattern is to match
      case $drop_in in
        $pattern)
          set +f
          return 0
          ;;
      esac
    done
  done <"$work/includes"
  set +f
  return 1
}
