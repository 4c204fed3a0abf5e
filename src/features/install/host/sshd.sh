# shellcheck shell=sh

# Checks the configuration file $1 with `sshd -t`, and prints the errors that sshd reports.
test_config() {
  if said=$("$sshd" -t -f "$1" 2>&1 </dev/null); then return 0; fi
  folder=$(echo "$said" | sed -n 's/^Missing privilege separation directory: *//p' | head -n 1)
  if [ -n "$folder" ]; then # sshd makes it when it starts
    mkdir -p "$folder" && chmod 755 "$folder"
    if said=$("$sshd" -t -f "$1" 2>&1 </dev/null); then return 0; fi
  fi
  echo "$said" >&2
  return 1
}

# Prints the settings that the configuration $1 gives to the account $2.
effective() {
  "$sshd" -T -f "$1" -C "user=$2,host=localhost,addr=127.0.0.1,laddr=127.0.0.1,lport=22" 2>&1 </dev/null
}

# Returns 0 if the configuration $1 gives our three settings to the account $2.
is_effective() {
  effective "$1" "$2" >"$work/effective" || return 1
  grep -qxF "trustedusercakeys $authorities" "$work/effective" &&
    grep -qxF "revokedkeys $list" "$work/effective" &&
    grep -qxF "authorizedprincipalsfile $data/principals/%u" "$work/effective"
}

# Checks that this host has the programs that the script needs, and that no other run of the script
# is changing it. Sets `sshd` to the path of sshd.
check_host() {
  [ "$(uname -s)" = Linux ] || fail 'this script is for Linux.'
  for candidate in "$sshd" "$(command -v sshd || true)" /usr/sbin/sshd /usr/local/sbin/sshd /sbin/sshd; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then break; fi
  done
  [ -x "$candidate" ] || fail 'sshd is not installed. Install the OpenSSH server, or name it with --sshd.'
  if [ -n "$sshd" ] && [ "$candidate" != "$sshd" ]; then fail "$sshd is no program."; fi
  sshd=$candidate
  for needed in ssh-keygen flock od awk stat cmp; do
    command -v "$needed" >/dev/null 2>&1 || fail "$needed is not installed."
  done
  config=$(readlink -f "$config")
  [ -f "$config" ] || fail "$config does not exist."
  exec 9<"${config%/*}"
  flock 9 || fail "${config%/*} could not be locked."
  delete_left_overs
}

# Makes sshd read its configuration again, and says so. Sets `reloaded`.
reload() {
  reloaded=yes
  if [ -n "$no_reload" ]; then
    reloaded=
    rm -f "$pending"
    say 'sshd was not reloaded (--no-reload): reload it now.'
    return 0
  fi
  reload_unit || reload_process || say 'no sshd runs with this configuration: it counts from the next start on.'
  rm -f "$pending"
}

# Reloads sshd by systemd. Fails if systemd does not run sshd.
reload_unit() {
  [ -d /run/systemd/system ] && [ "$config" = "$(readlink -f /etc/ssh/sshd_config)" ] || return 1
  for service in ssh.service sshd.service; do
    if systemctl is-active --quiet "$service"; then
      systemctl reload "$service" || fail "systemctl reload $service failed. The configuration is whole; reload sshd by hand."
      say "reloaded $service"
      return 0
    fi
  done
  return 1
}

# Sends SIGHUP to each sshd that reads our configuration. Fails if none runs. A process that ended
# since it was found needs no reload.
reload_process() {
  running_sshd >"$work/running"
  count=0
  while read -r pid; do
    if kill -HUP "$pid" 2>/dev/null; then
      count=$((count + 1))
      say "reloaded sshd, process $pid"
    elif [ -d "/proc/$pid" ]; then
      fail "sshd, process $pid, could not be reloaded. The configuration is whole; reload sshd by hand."
    fi
  done <"$work/running"
  [ "$count" -gt 0 ]
}

# Prints the process id of each sshd that listens and reads our configuration, according to the
# PidFile or its command line. The sshd of a container is left out, because it sees other files.
running_sshd() {
  pid_file=$(effective "$config" root | sed -n 's/^pidfile //p')
  { cat "$pid_file" 2>/dev/null || true; listening_sshd; } | grep -xE '[0-9]+' | sort -u | while read -r pid; do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] || continue
    [ "$(readlink "/proc/$pid/ns/mnt" 2>/dev/null)" = "$(readlink /proc/self/ns/mnt)" ] || continue
    echo "$pid"
  done
}

# Prints the process id of each sshd whose command line says that it listens and reads our
# configuration. A process may end meanwhile: the shell itself would print an error for its file.
listening_sshd() {
  for folder in /proc/[0-9]*; do
    line="$({ tr '\0' ' ' <"$folder/cmdline"; } 2>/dev/null) " || continue
    case $line in
      'sshd: /'* | /*sshd' '*) ;;
      *) continue ;;
    esac
    case $line in
      *" -f $config "* | *" -f$config "*) echo "${folder#/proc/}" ;;
      *' -f'*) ;;
      *) [ "$config" != "$(readlink -f /etc/ssh/sshd_config)" ] || echo "${folder#/proc/}" ;;
    esac
  done
}
