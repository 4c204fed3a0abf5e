/**
 * A file of the `svc` command that an install script downloads, with its SHA-256 in hexadecimal.
 */
export interface InstalledFile {
  /** The path of the file in URLs of the server, such as `/static/svc.mjs`. */
  readonly path: string;
  readonly sha256: string;
  /**
   * True if the signed list of the release contains the file, so that the signature can be
   * verified.
   */
  readonly isReleased: boolean;
}

/** The values that are written into the install scripts. */
export interface InstallFacts {
  /** The base URL of the server. */
  readonly server: string;
  /** The script, which runs on Node. */
  readonly script: InstalledFile;
  /** The executables by their system and processor, such as `linux-x64`. */
  readonly executables: ReadonlyMap<string, InstalledFile>;
}

/**
 * Returns the POSIX shell script `/install.sh`. All of it is in one function, which only the last
 * line calls, so that a script whose download was cut off does nothing.
 */
export function installScript({ server, script, executables }: InstallFacts): string {
  const cases = [...executables]
    .filter(([system]) => !system.startsWith('win'))
    .map(([system, file]) => `    ${system}) ${assignments(file)} ;;`);
  return `#!/bin/sh
# Installs the svc command of ${server} for the user who runs this script.
# It writes ~/.local/bin/svc, and the address of the server into ~/.config/svc/config.json.
# Run it again to update. To undo it: rm ~/.local/bin/svc
#
# The server vouches for the SHA-256 of each file. To demand the signature of the maintainers too,
# put their key into ~/.config/svc/allowed_signers, or name such a file by SVC_ALLOWED_SIGNERS.

server=${quoted(server)}
choose_script() {
  ${assignments(script)}
}
choose_executable() {
  case "$1" in
${[...cases, '    *) return 1 ;;'].join('\n')}
  esac
}
${SCRIPT}`;
}

/** Returns the assignments of the shell variables that describe a file. */
function assignments({ path, sha256, isReleased }: InstalledFile): string {
  return `path=${quoted(path)} sha256=${quoted(sha256)} released=${isReleased ? 'yes' : 'no'}`;
}

/**
 * Quotes a value for a shell. It drops single quotation marks, which the URLs, paths and hashes of
 * the script never contain.
 */
export function quoted(value: string): string {
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
  if has curl; then curl -fsS -o "$2" "$server$1"
  elif has wget; then wget -q -O "$2" "$server$1"
  else fail 'neither curl nor wget is installed.' 'Install one of them, then run this again.'
  fi || fail "$server$1 cannot be downloaded." 'Check the network, then run this again.'
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

# Prints the system and the processor, such as linux-x64.
system() {
  has uname || return 0
  case "$(uname -s)" in
    Linux) printf 'linux-' ;;
    Darwin) printf 'darwin-' ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) printf 'x64' ;;
    aarch64 | arm64) printf 'arm64' ;;
  esac
}

# Compares the file with the signed list of the release, if the user has the key of the maintainers.
check_signature() {
  signers=\${SVC_ALLOWED_SIGNERS:-$HOME/.config/svc/allowed_signers}
  [ -n "\${SVC_ALLOWED_SIGNERS:-}" ] || [ -e "$signers" ] || return 0
  [ "$released" = yes ] || fail "$server has no signed release, which $signers demands. Nothing is installed." 'Tell an admin.'
  has ssh-keygen || fail "ssh-keygen is not installed, and $signers demands a signature." 'Install OpenSSH, then run this again.'
  download /install/files/SHA256SUMS "$new.list"
  download /install/files/SHA256SUMS.sig "$new.sig"
  ssh-keygen -Y verify -f "$signers" -I release@svc-server -n file -s "$new.sig" <"$new.list" >/dev/null 2>&1 ||
    fail "the release has no signature by a key of $signers. Nothing is installed." 'Do not install it; tell an admin.'
  while read -r sum name; do
    [ "$sum  $name" != "$sha256  \${path##*/}" ] || return 0
  done <"$new.list"
  fail 'the signed list has another SHA-256. Nothing is installed.' 'Do not install it; tell an admin.'
}

# Downloads the chosen file into $new.part, and checks it.
fetch() {
  download "$path" "$new.part"
  [ "$(sum_of "$new.part")" = "$sha256" ] ||
    fail 'the download does not have the expected SHA-256. Nothing is installed.' 'Run this again; if that does not help, tell an admin.'
  check_signature
}

# Makes the executable in $new. It returns 1 if there is none for this system, or it does not run here.
make_executable() {
  choose_executable "$(system)" || return 1
  has gzip || return 1
  fetch
  gzip -dc "$new.part" >"$new" || fail 'the download is damaged. Nothing is installed.' 'Tell an admin.'
  chmod 755 "$new"
  "$new" --version >/dev/null 2>&1 && return 0
  printf 'svc: the executable does not run on this system; the script for Node is installed.\\n' >&2
  return 1
}

make_script() {
  choose_script
  check_node
  fetch
  mv -f "$new.part" "$new"
  chmod 755 "$new"
}

main() {
  [ -n "\${HOME:-}" ] || fail 'HOME is not set.' 'Set HOME to your home folder, then run this again.'
  bin="$HOME/.local/bin"
  mkdir -p "$bin" || fail "$bin cannot be created." 'Check who owns it, then run this again.'
  new="$bin/.svc.$$"
  trap 'rm -f "$new" "$new.part" "$new.list" "$new.sig"' EXIT
  trap 'exit 1' HUP INT TERM
  ( umask 077; : >"$new"; : >"$new.part" ) || fail "$bin cannot be written to." 'Check who owns it, then run this again.'
  make_executable || make_script
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
