# shellcheck shell=sh

# Fetches the URL $1 into the file $2 and sets `status`. It follows no redirect. If the server still
# has the version $3 (an entity tag), it answers 304. Only curl and GNU Wget are used, because the
# wget of busybox does not verify the certificate of the server.
fetch() {
  scheme=${1%%:*}
  exit_status=0
  if command -v curl >/dev/null 2>&1; then
    status=$(curl -q --silent --show-error --proto "=$scheme" --max-time 60 --max-filesize 67108864 \
      --header "If-None-Match: \"${3:-none}\"" --output "$2" --write-out '%{http_code}' "$1" \
      2>"$2.log" </dev/null 9<&-) || exit_status=$?
  elif wget --version 2>/dev/null | grep -q '^GNU Wget'; then
    wget --no-verbose --server-response --tries=1 --timeout=30 --max-redirect=0 \
      --header "If-None-Match: \"${3:-none}\"" --output-document="$2" "$1" \
      2>"$2.log" </dev/null 9<&- || exit_status=$?
    status=$(sed -n 's|^ *HTTP/[0-9.]* \([0-9][0-9][0-9]\).*|\1|p' "$2.log" | tail -n 1)
    case $status in 200 | '') ;; *) exit_status=0 ;; esac # Wget fails on any other status
  else
    fail 'neither curl nor GNU Wget is installed.'
  fi
  [ "$exit_status" = 0 ] || fail "$1 could not be fetched: $(tr '\n' ' ' <"$2.log" | cut -c 1-300)."
}
