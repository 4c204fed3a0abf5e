# shellcheck shell=sh

# Shows the authorities that this host trusts. The exit status is 0 if sshd uses our settings, and
# this host has a complete list of revoked certificates and a schedule that refreshes it.
show_status() {
  healthy=yes
  say "server $server"
  if is_effective "$config" root; then
    say 'sshd uses the settings of this script'
  else
    healthy=
    say 'sshd does not use the settings of this script: this host has not joined'
  fi
  if [ -f "$authorities" ]; then ssh-keygen -l -f "$authorities" </dev/null | while read -r _ fingerprint rest; do
    say "authority $fingerprint $rest"
  done; fi
  show_list
  for file in "$data/principals/"*; do
    [ ! -f "$file" ] || say "account ${file##*/}: $(grep -v '^#' "$file" | tr '\n' ' ')"
  done
  show_schedule
  [ -n "$healthy" ]
}

show_list() {
  if number=$(number_of "$list"); then
    say "list of revoked certificates: number $((0x$number)), changed $(stat -c %y "$list" | cut -d . -f 1)"
  else
    healthy=
    say "there is no whole list of revoked certificates in $list"
  fi
}

show_schedule() {
  if [ -e "$units/$unit.timer" ] && is_systemd_here; then
    say "refresh by systemd: $unit.timer is $(systemctl is-active "$unit.timer" || true), the last run: $(systemctl show -p Result --value "$unit.service")"
  elif [ -e "$units/$unit.timer" ]; then
    say "refresh by systemd: $units/$unit.timer"
  elif [ -e "$cron/$unit" ]; then
    say "refresh by cron: $cron/$unit"
  else
    healthy=
    say 'refresh: neither by systemd nor by cron'
  fi
}
