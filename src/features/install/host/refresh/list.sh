# shellcheck shell=sh

# Prints the number of the revocation list $1 as 16 hexadecimal digits. It fails if the file is not
# a complete list.
number_of() {
  [ -f "$1" ] || return 1
  header=$(od -A n -v -t x1 -N 20 "$1" | tr -d ' \n')
  case $header in
    5353484b524c0a0000000001????????????????) ;; # the magic and the version of the format (OpenSSH PROTOCOL.krl)
    *) return 1 ;;
  esac
  ssh-keygen -Q -l -f "$1" >/dev/null 2>&1 </dev/null || return 1
  echo "${header#????????????????????????}"
}
