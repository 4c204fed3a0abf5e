# shellcheck shell=sh

usage() {
  cat <<END
usage: curl -fsS $server/install-host.sh | sh -s -- OPTIONS      (as root)

  --account NAME             an account of this host; the principals that follow may log in to it
  --principal ADDRESS        a principal of that account: the e-mail address of a user; may be repeated
  --principals-file FILE     principals of that account, one a line
  --ca-fingerprint SHA256:…  refuse an authority with another fingerprint
  --dry-run                  show the changes, and make none
  --status                   show whether this host has joined, and which list it has
  --print PART               print the refresh program, or a unit for it, and do nothing else: program, service, timer, cron
  --remove                   undo everything; with --account: remove the principals of these accounts only

For unusual hosts:
  --etc DIR                  the folder of sshd's files (/etc/ssh)
  --sshd-config FILE         the configuration of sshd (sshd_config in that folder)
  --sshd FILE                the program
  --no-reload                do not reload sshd
  --schedule KIND            how the list is refreshed: systemd, cron, or none
  --sbin DIR                 the folder of the refresh program (/usr/local/sbin)
  --units DIR                the folder of systemd's units (/etc/systemd/system)
  --cron DIR                 the folder of cron's files (/etc/cron.d)

An account keeps the principals of an earlier run until a run names the account again.
END
}

# Ends the script because of a wrong option.
reject() {
  printf 'install-host: %s\n' "$*" | tr -cd '[:print:]\n…' >&2
  echo 'install-host: nothing was changed. --help lists the options.' >&2
  exit 2
}

set_defaults() {
  mode='join'
  dry_run=
  changed=
  needs_reload=
  no_reload=
  account=
  ca_fingerprints=
  etc=/etc/ssh
  config=
  sshd=
  schedule=
  sbin=/usr/local/sbin
  units=/etc/systemd/system
  cron=/etc/cron.d
  mkdir "$work/accounts"
}

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --remove) mode=remove ;;
      --status) mode=status ;;
      --dry-run) dry_run=yes ;;
      --no-reload) no_reload=yes ;;
      -h | --help)
        usage
        exit 0
        ;;
      --account | --principal | --principals-file | --ca-fingerprint | --print | --etc | --sshd-config | --sshd | --schedule | --sbin | --units | --cron)
        [ $# -ge 2 ] || reject "$1 needs a value."
        read_value "$1" "$2"
        shift
        ;;
      *) reject "the option '$1' is unknown." ;;
    esac
    shift
  done
}

# Reads the option $1 with its value $2.
read_value() {
  case $1 in
    --account) begin_account "$2" ;;
    --principal) add_principal "$2" ;;
    --principals-file) add_principals_of "$2" ;;
    --ca-fingerprint)
      case $2 in
        SHA256:*[!A-Za-z0-9+/]* | SHA256: | SHA256) reject "'$2' is no fingerprint." ;;
        SHA256:*) ca_fingerprints="$ca_fingerprints $2" ;;
        *) reject "'$2' is no fingerprint: it begins with SHA256:." ;;
      esac
      ;;
    --print)
      mode=print
      part=$2
      ;;
    --schedule)
      case $2 in
        systemd | cron | none) schedule=$2 ;;
        *) reject "--schedule is systemd, cron or none." ;;
      esac
      ;;
    *) read_path "$1" "$2" ;;
  esac
}

# Reads the option $1, a path. sshd_config, a unit and a line of cron give other characters a meaning.
read_path() {
  case $2 in
    */../* | */.. | *[!A-Za-z0-9._/@+-]*) reject "$1 '$2' has characters that sshd_config, systemd or cron would read in another way." ;;
    /?*) ;;
    *) reject "$1 needs an absolute path." ;;
  esac
  case $1 in
    --etc) etc=$2 ;;
    --sshd-config) config=$2 ;;
    --sshd) sshd=$2 ;;
    --sbin) sbin=$2 ;;
    --units) units=$2 ;;
    --cron) cron=$2 ;;
  esac
}

# Begins the account $1. The name becomes the name of a file.
begin_account() {
  case $1 in
    '' | [.-]* | *[!A-Za-z0-9._-]*) reject "--account '$1' is no account name: letters, digits, '.', '_' and '-' make one." ;;
  esac
  [ ${#1} -le 64 ] || reject "--account '$1' is longer than 64 characters."
  account=$1
  : >>"$work/accounts/$account"
}

# Adds the principal $1 to the account. In the file of sshd, a space would turn it into options, and a line feed into two principals.
add_principal() {
  [ -n "$account" ] || reject "--principal '$1' stands before any --account."
  case $1 in
    '' | -* | *[!A-Za-z0-9._%+=@\'\&/~-]*) reject "'$1' is no principal: it is the e-mail address of one user, in ASCII." ;;
  esac
  principal=$1
  case $1 in *@*) principal=$(echo "$1" | tr '[:upper:]' '[:lower:]') ;; esac # as in certificates
  grep -qxF -e "$principal" "$work/accounts/$account" || echo "$principal" >>"$work/accounts/$account"
}

# Adds the principals of the file $1: one a line, empty lines and comments aside.
add_principals_of() {
  [ -n "$account" ] || reject "--principals-file '$1' stands before any --account."
  if [ ! -f "$1" ] || [ ! -r "$1" ]; then reject "--principals-file '$1' cannot be read."; fi
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) continue ;; esac
    add_principal "$line"
  done <"$1"
}

# Derives what the options leave open, and checks that they fit together.
complete_options() {
  : "${config:=$etc/sshd_config}"
  data=$etc/svc
  list=$data/revoked.krl
  authorities=$data/ca.pub
  drop_in=$etc/sshd_config.d/00-svc.conf
  pending=$data/.reload-pending
  program=$sbin/svc-refresh-krl
  refresh="$program $server/v1/credentials/ssh/krl $list $authorities"
  [ "$mode" = join ] || return 0
  [ -n "$account" ] || reject 'name an account with --account, and its users with --principal.'
  for file in "$work/accounts/"*; do
    [ -s "$file" ] || reject "--account '${file##*/}' has no --principal."
  done
}
