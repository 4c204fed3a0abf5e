# shellcheck shell=sh

usage() {
  cat <<END
usage: curl -fsS $server/install-host.sh | sh -s -- OPTIONS      (as root)

  --account NAME             an account of this host; the principals that follow may log in to it
  --principal ADDRESS        a principal of that account: the e-mail address of a user; may be repeated
  --principals-file FILE     principals of that account, one a line
  --organization ID          with the next two: the people of a group of hosts log in by the group
  --group NAME,…             the groups of hosts of that organization to which this host belongs
  --login NAME,…             the accounts that these groups, and no other principals, may log in to
  --interval SECONDS         how often the list of revoked certificates is fetched: 1 to 60 (60)
  --ca-fingerprint SHA256:…  refuse an authority with another fingerprint
  --dry-run                  show the changes, and make none
  --status                   show whether this host has joined, and which list it has
  --print PART               print the refresh program, or a unit for it, and do nothing else: program, service, timer, cron
  --remove                   undo everything; with --account or --login: remove the principals of these accounts only

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
  organization=
  groups=
  logins=
  interval=
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
      --account | --principal | --principals-file | --organization | --group | --login | --interval | --ca-fingerprint | --print | --etc | --sshd-config | --sshd | --schedule | --sbin | --units | --cron)
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
    --organization) read_organization "$2" ;;
    --group) groups="$groups $(names "$1" "$2" 'a-z' 'a-z0-9-')" || exit 2 ;;
    --login) logins="$logins $(names "$1" "$2" 'a-z_' 'a-z0-9_-')" || exit 2 ;;
    --interval)
      case $2 in
        [1-9] | [1-5][0-9] | 60) interval=$2 ;;
        *) reject "--interval is a number of seconds from 1 to 60." ;;
      esac
      ;;
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

# Reads the option $1, whose value $2 must be a path. Only some characters are allowed, because
# sshd_config, a unit of systemd and a line of cron give the others a meaning.
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

# Reads the name of an account, $1. The options after it are about this account. The name is
# checked, because it becomes the name of a file.
begin_account() {
  case $1 in
    '' | [.-]* | *[!A-Za-z0-9._-]*) reject "--account '$1' is no account name: letters, digits, '.', '_' and '-' make one." ;;
  esac
  [ ${#1} -le 64 ] || reject "--account '$1' is longer than 64 characters."
  account=$1
  : >>"$work/accounts/$account"
}

# Adds the principal $1 to the account. It is checked, because in the file that sshd reads, a space
# would make options of its first part, and a line feed would make two principals.
add_principal() {
  [ -n "$account" ] || reject "--principal '$1' stands before any --account."
  case $1 in
    '' | -* | *[!A-Za-z0-9._%+=@\'\&/~-]*) reject "'$1' is no principal: it is the e-mail address of one user, in ASCII." ;;
  esac
  principal=$1
  case $1 in *@*) principal=$(echo "$1" | tr '[:upper:]' '[:lower:]') ;; esac # as in certificates
  add_line "$principal"
}

# Adds the line $1 to the principals of the account, unless they have it already.
add_line() { grep -qxF -e "$1" "$work/accounts/$account" || echo "$1" >>"$work/accounts/$account"; }

# Adds the principals in the file $1, one on each line. Empty lines and comments are skipped.
add_principals_of() {
  [ -n "$account" ] || reject "--principals-file '$1' stands before any --account."
  if [ ! -f "$1" ] || [ ! -r "$1" ]; then reject "--principals-file '$1' cannot be read."; fi
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) continue ;; esac
    add_principal "$line"
  done <"$1"
}

# Reads the id of an organization.
read_organization() {
  case $1 in
    *[!0-9a-f-]*) reject "--organization '$1' is no id of an organization." ;;
  esac
  echo "$1" | grep -qxE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' || reject "--organization '$1' is no id of an organization."
  organization=$1
}

# Prints the names in the list $2, the value of the option $1. Each must begin with one of the
# characters $3 and may contain those of $4, because the names become names of files and lines of
# the files that sshd reads.
names() {
  case $2 in
    '' | ,* | *, | *,,* | *[!,$4]*) reject "$1 '$2' is no list of names with commas." ;;
  esac
  for name in $(echo "$2" | tr , ' '); do
    case $name in
      [!$3]*) reject "$1 '$name' is no name: it begins with a lower-case letter." ;;
    esac
    [ ${#name} -le 32 ] || reject "$1 '$name' is longer than 32 characters."
    echo "$name"
  done
}

# Makes the accounts that --login names. Their principals are those of the groups, and no others.
add_logins() {
  [ -n "$organization$groups$logins" ] || return 0
  if [ "$mode" != remove ]; then
    if [ -z "$organization" ] || [ -z "$groups" ]; then reject '--login needs --organization and --group.'; fi
    [ -n "$logins" ] || reject '--group needs --login: the accounts that the groups may log in to.'
  elif [ -z "$logins" ]; then
    reject '--remove with --group needs --login: the accounts to take away. --remove alone undoes everything.'
  fi
  for login in $(echo "$logins" | tr ' ' '\n' | sort -u); do
    [ ! -s "$work/accounts/$login" ] || reject "'$login' has --principal and --login. The groups alone may log in to an account of --login."
    begin_account "$login"
    for group in $groups; do add_line "$login@$group:$organization"; done
  done
}

# Sets a default for each option that was not given, and checks that the options fit together.
complete_options() {
  : "${config:=$etc/sshd_config}"
  data=$etc/svc
  list=$data/revoked.krl
  authorities=$data/ca.pub
  drop_in=$etc/sshd_config.d/00-svc.conf
  pending=$data/.reload-pending
  program=$sbin/svc-refresh-krl
  refresh="$program $server/v1/credentials/ssh/krl $list $authorities"
  add_logins
  [ "$mode" = join ] || return 0
  [ -n "$account" ] || reject 'name an account with --account, and its users with --principal; or groups of hosts with --organization, --group and --login.'
  for file in "$work/accounts/"*; do
    [ -s "$file" ] || reject "--account '${file##*/}' has no --principal."
  done
}
