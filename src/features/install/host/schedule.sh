# shellcheck shell=sh

unit=svc-refresh-krl

# Decides whether systemd or cron refreshes the list, unless an option says it.
choose_schedule() {
  [ -z "$schedule" ] || return 0
  if [ -d /run/systemd/system ]; then
    schedule=systemd
  elif [ -d "$cron" ]; then
    schedule=cron
  else
    fail "neither systemd runs here nor is there $cron. Nothing was changed. With --schedule none this script leaves the refresh to you:
run '$refresh' every minute."
  fi
}

service_unit() {
  cat <<END
#include refresh/svc-refresh-krl.service
END
}

# Prints the timer of systemd. With an interval, it starts the program that many seconds after the
# last run ended.
timer_unit() {
  if [ -z "$interval" ] || [ "$interval" = 60 ]; then
    minutely_timer
  else
    minutely_timer | sed "s/every minute\$/every $interval s/; s/^OnCalendar=.*/OnActiveSec=1s\nOnUnitInactiveSec=${interval}s/; s/^AccuracySec=.*/AccuracySec=100ms/; /^RandomizedDelaySec=/d; /^Persistent=/d"
  fi
}

minutely_timer() {
  cat <<END
#include refresh/svc-refresh-krl.timer
END
}

# Prints for how many seconds (below 50) this host waits before it asks for the list. The number
# depends on the name of the host, so that not all hosts ask at the same time.
delay_of_host() { uname -n | od -A n -v -t u1 | awk '{ for (i = 1; i <= NF; i++) sum += i * NR * $i } END { print sum % 50 }'; }

# Prints the file for cron.
cron_file() {
  cat <<END
# Written by install-host.sh of $server.
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
* * * * * root $(cron_command)
END
}

# Prints the command that cron starts each minute. With an interval, the command runs the program
# again and again during this minute, one run after the other. The clock ends it, so that no more
# than one command asks a server that does not answer. The command has no percent sign, which cron
# would read as the end of a line.
cron_command() {
  if [ -z "$interval" ] || [ "$interval" = 60 ]; then
    echo "sleep $(delay_of_host); exec $refresh"
  else
    uptime="\$(cut -d . -f 1 /proc/uptime)"
    echo "end=\$(($uptime + 60)); while :; do $refresh; sleep $interval; [ \"$uptime\" -lt \"\$end\" ] || break; done"
  fi
}

# Writes the refresh program.
refresh_program() {
  cat <<'END_OF_PROGRAM'
#include refresh/svc-refresh-krl.sh
END_OF_PROGRAM
}

# Prints one of the files that an operator needs to set up a host without this script.
print_part() {
  case $part in
    program) refresh_program ;;
    service) service_unit ;;
    timer) timer_unit ;;
    cron) cron_file ;;
    *) reject '--print is program, service, timer or cron.' ;;
  esac
}

# Makes systemd or cron run the refresh program.
write_schedule() {
  earlier=$changed
  changed=
  if [ "$schedule" = systemd ]; then
    make_folder_if_missing "$units"
    make_folder_if_missing "$units/timers.target.wants"
    put "$units/$unit.service" '644 0:0' service_unit
    put "$units/$unit.timer" '644 0:0' timer_unit
    enable_timer
  else
    remove_units
  fi
  if [ "$schedule" = cron ]; then
    put "$cron/$unit" '644 0:0' cron_file
    cat /proc/[0-9]*/comm 2>/dev/null | grep -qxE 'crond?|busybox' ||
      say 'warning: cron does not run. Until it does, no revocation reaches this host.'
  else
    delete "$cron/$unit"
  fi
  [ "$schedule" != none ] || say "run '$refresh' every minute: until then no revocation reaches this host."
  changed=$earlier$changed
}

# Does the same as `systemctl enable --now`, but also works while a container image is built, when
# systemd does not run.
enable_timer() {
  link=$units/timers.target.wants/$unit.timer
  if [ "$(readlink "$link" || true)" != "$units/$unit.timer" ]; then
    changed=yes
    if [ -n "$dry_run" ]; then say "would enable $unit.timer"; else ln -sf "$units/$unit.timer" "$link"; fi
  fi
  if [ -n "$dry_run" ] || ! is_systemd_here; then return 0; fi
  if [ -n "$changed" ] || ! systemctl is-active --quiet "$unit.timer"; then
    systemctl daemon-reload || fail 'systemctl daemon-reload failed.'
    systemctl restart "$unit.timer" || fail "systemctl restart $unit.timer failed."
    say "started $unit.timer"
  fi
}

# Returns 0 if systemd runs and reads units from the folder to which this run writes them.
is_systemd_here() { [ -d /run/systemd/system ] && [ "$units" = /etc/systemd/system ]; }

remove_units() {
  [ -e "$units/$unit.timer" ] || [ -e "$units/$unit.service" ] || return 0
  if [ -z "$dry_run" ] && is_systemd_here; then systemctl stop "$unit.timer" "$unit.service" || true; fi
  delete "$units/timers.target.wants/$unit.timer"
  if [ -z "$dry_run" ]; then rmdir "$units/timers.target.wants" 2>/dev/null || true; fi # only if it is empty, as systemctl does
  delete "$units/$unit.timer"
  delete "$units/$unit.service"
  if [ -z "$dry_run" ] && is_systemd_here; then
    systemctl daemon-reload || true
    rm -f "/var/lib/systemd/timers/stamp-$unit.timer" # of Persistent=true
  fi
}
