/** The values that are written into the install script. */
export interface InstallFacts {
  /** The base URL of the server. */
  readonly server: string;
  /** The SHA-256 of the bundle, in hexadecimal. */
  readonly sha256: string;
}

/**
 * Returns the POSIX shell script `/install.sh`. All of it is in one function, which only the last
 * line calls, so that a script whose download was cut off does nothing.
 */
export function installScript({ server, sha256 }: InstallFacts): string {
  return `#!/bin/sh
# Installs the svc command of ${server} for the user who runs this script.
# It writes ~/.local/bin/svc, and the address of the server into ~/.config/svc/config.json.
# Run it again to update. To undo it: rm ~/.local/bin/svc

server=${quoted(server)}
sha256=${quoted(sha256)}
${SCRIPT}`;
}

/**
 * Quotes a value for the shell. It drops quotation marks, because an address and a hash contain
 * none.
 */
function quoted(value: string): string {
  return `'${value.replaceAll("'", '')}'`;
}

const SCRIPT = `
set -eu

fail() {
  printf 'svc: %s\\n' "$1" >&2
  [ $# -lt 2 ] || printf '     %s\\n' "$2" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

download() {
  if has curl; then curl -fsS -o "$2" "$1"
  elif has wget; then wget -q -O "$2" "$1"
  else fail 'neither curl nor wget is installed.' 'Install one of them, then run this again.'
  fi
}

sum_of() {
  if has sha256sum; then sha256sum "$1" | cut -d ' ' -f 1
  elif has shasum; then shasum -a 256 "$1" | cut -d ' ' -f 1
  elif has openssl; then openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else fail 'no program for SHA-256 is installed.' 'Install sha256sum, shasum or openssl.'
  fi
}

check_node() {
  has node || fail 'Node is not installed.' 'Install Node 20 or newer (https://nodejs.org), then run this again.'
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' ||
    fail "Node $(node --version) is too old." 'Install Node 20 or newer (https://nodejs.org), then run this again.'
}

main() {
  [ -n "\${HOME:-}" ] || fail 'HOME is not set.' 'Set HOME to your home folder, then run this again.'
  check_node
  bin="$HOME/.local/bin"
  mkdir -p "$bin" || fail "$bin cannot be created." 'Check who owns it, then run this again.'
  new="$bin/.svc.$$"
  trap 'rm -f "$new"' EXIT
  trap 'exit 1' HUP INT TERM
  ( umask 077; : >"$new" ) || fail "$bin cannot be written to." 'Check who owns it, then run this again.'
  download "$server/static/svc.mjs" "$new" ||
    fail "$server/static/svc.mjs cannot be downloaded." 'Check the network, then run this again.'
  [ "$(sum_of "$new")" = "$sha256" ] ||
    fail 'the download does not have the expected SHA-256. Nothing is installed.' 'Run this again; if that does not help, tell an admin.'
  chmod 755 "$new"
  mv -f "$new" "$bin/svc"
  "$bin/svc" use "$server" >/dev/null || exit 1
  printf 'svc is installed in %s.\\n' "$bin/svc"
  case ":$PATH:" in
    *":$bin:"*) printf 'Next: svc login\\n' ;;
    *)
      printf '%s is not on your PATH. Add this line to the file that your shell reads (~/.profile):\\n' "$bin"
      printf '  export PATH="$HOME/.local/bin:$PATH"\\n'
      printf 'Next: ~/.local/bin/svc login\\n'
      ;;
  esac
}

main
`;
