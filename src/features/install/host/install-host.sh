#!/bin/sh
# Makes sshd of this host accept the SSH certificates of @BASE_URL@, and refuse the revoked ones:
#
#   curl -fsS @BASE_URL@/install-host.sh | sh -s -- --account root --principal alice@example.com
#
# It may run again at any time; `--help` lists the options. The configuration of sshd works at each
# moment of a run: the files that sshd_config names are complete before it names them, and each file
# is replaced by a rename.
set -eu
umask 022
LC_ALL=C
export LC_ALL
server='@BASE_URL@'

say() { echo "install-host: $*"; }

fail() {
  echo "install-host: $*" >&2
  exit 1
}

#include refresh/fetch.sh
#include refresh/list.sh
#include options.sh
#include files.sh
#include sshd-settings.sh
#include sshd.sh
#include schedule.sh
#include join.sh
#include remove.sh
#include status.sh

# Removes the temporary files. The trap for EXIT calls it, also after a signal.
clean_up() { rm -rf "${work:?}"; }

main() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/svc-install-host.XXXXXX")
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM
  set_defaults
  read_options "$@"
  complete_options
  if [ "$mode" = print ]; then
    print_part
    exit 0
  fi
  [ "$(id -u)" = 0 ] || fail "run this as root: curl -fsS $server/install-host.sh | sudo sh -s -- …"
  check_host
  case $mode in
    join) join ;;
    remove) remove ;;
    status) show_status ;;
  esac
}

main "$@"
