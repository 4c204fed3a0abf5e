import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** The path of the systemd unit by which the service runs on a single machine. */
export const UNIT = join(ROOT, 'deploy/svc-server.service');

/**
 * Reads the settings of a systemd unit. A setting may occur several times, so each name has a list
 * of values.
 */
export function settingsOf(unit: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of unit.split('\n')) {
    const [, name, value = ''] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) found.set(name, [...(found.get(name) ?? []), value]);
  }
  return found;
}

/**
 * The opcodes in a seccomp filter, the kernel's filter of system calls in classic BPF: load a word,
 * jump if equal, return.
 */
const [LOAD, IF_EQUAL, RETURN] = [0x20, 0x15, 0x06];
const [ALLOW, FAIL_WITH, KILL] = [0x7fff_0000, 0x0005_0000, 0x8000_0000];
const [EPERM, EAFNOSUPPORT] = [1, 97];
/**
 * The byte offsets in the kernel's `struct seccomp_data`: number of the system call, architecture,
 * first argument.
 */
const [NUMBER, ARCHITECTURE, FIRST_ARGUMENT] = [0, 4, 16];
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, number>> = {
  x64: 0xc000_003e,
  arm64: 0xc000_00b7,
};
const FAMILIES: Readonly<Record<string, number>> = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10 };

/**
 * Compiles the unit's settings SystemCallFilter= and RestrictAddressFamilies= into a seccomp
 * filter. systemd does the same, but no systemd runs on the machine of the tests.
 */
function filterOf(settings: Map<string, string[]>): Buffer {
  const allowed = new Set<string>();
  for (const value of settings.get('SystemCallFilter') ?? []) {
    const names = value.replace(/^~/, '').split(' ').flatMap(callsOf);
    for (const name of names) allowed[value.startsWith('~') ? 'delete' : 'add'](name);
  }
  const numbers = callNumbers();
  const families = (settings.get('RestrictAddressFamilies') ?? []).join(' ').split(' ');
  const program: [code: number, ifTrue: number, ifFalse: number, value: number][] = [];
  const returnIf = (value: number, result: number) =>
    program.push([IF_EQUAL, 0, 1, value], [RETURN, 0, 0, result]);
  program.push(
    [LOAD, 0, 0, ARCHITECTURE],
    [IF_EQUAL, 1, 0, ARCHITECTURES[process.arch] ?? 0],
    [RETURN, 0, 0, KILL],
    [LOAD, 0, 0, NUMBER],
  );
  for (const name of allowed) {
    const number = numbers.get(name);
    if (number !== undefined && name !== 'socket') returnIf(number, ALLOW);
  }
  program.push(
    [IF_EQUAL, 1, 0, numbers.get('socket') ?? 0],
    [RETURN, 0, 0, FAIL_WITH | EPERM],
    [LOAD, 0, 0, FIRST_ARGUMENT],
  );
  for (const family of families) returnIf(FAMILIES[family] ?? 0, ALLOW);
  program.push([RETURN, 0, 0, FAIL_WITH | EAFNOSUPPORT]);
  return Buffer.concat(
    program.map(([code, ifTrue, ifFalse, value]) => {
      const instruction = Buffer.alloc(8);
      instruction.writeUInt16LE(code, 0);
      instruction.writeUInt8(ifTrue, 2);
      instruction.writeUInt8(ifFalse, 3);
      instruction.writeUInt32LE(value, 4);
      return instruction;
    }),
  );
}

/**
 * Returns the names of the system calls in a systemd set, such as `@system-service`. A name without
 * `@` is a system call itself.
 */
function callsOf(name: string): string[] {
  if (!name.startsWith('@')) return [name];
  const { stdout } = spawnSync('systemd-analyze', ['--no-pager', 'syscall-filter', name], {
    encoding: 'utf8',
  });
  const words = stdout.split('\n').filter((line) => /^\s+[@a-z_0-9]/.test(line));
  return words.map((line) => line.trim()).flatMap(callsOf);
}

/**
 * Returns the number of each system call, by its name. The C preprocessor prints them from the
 * system's headers.
 */
function callNumbers(): Map<string, number> {
  const { stdout } = spawnSync(
    'gcc',
    ['-E', '-dM', '-include', 'sys/syscall.h', '-xc', '/dev/null'],
    {
      encoding: 'utf8',
    },
  );
  const lines = stdout.matchAll(/^#define __NR_(\w+) (\d+)$/gm);
  return new Map([...lines].map(([, name = '', number]) => [name, Number(number)]));
}

/** The folders of this host that the sandboxed process may write. */
export interface Machine {
  /** A folder of the test, in which the state directory of the service is made. */
  readonly folder: string;
  /** The folders outside that the process may use, such as that of the database's socket. */
  readonly shared: readonly string[];
}

/**
 * Starts a program in the sandbox that the unit gives to the service. The program runs as another
 * user without capabilities. Its root is read-only, with the release and Node at the paths of the
 * unit. It has its own /tmp, no home folders, a writable state directory, and the unit's seccomp
 * filter.
 *
 * bubblewrap replaces systemd here. It has nothing like RestrictNamespaces= and LockPersonality=.
 *
 * @param command the program with its arguments, by their paths in the sandbox
 */
export function startAsUnit(
  { folder, shared }: Machine,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  const settings = settingsOf(readFileSync(UNIT, 'utf8'));
  const state = join(folder, 'state');
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const program = join(folder, 'filter.bpf');
  writeFileSync(program, filterOf(settings));
  const words = [
    ['--unshare-user', '--uid', '64999', '--gid', '64999', '--cap-drop', 'ALL'],
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--die-with-parent', '--new-session'],
    ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'],
    ['/tmp', '/home', '/root', '/opt', '/usr/local/bin', '/var/lib'].flatMap((at) => [
      '--tmpfs',
      at,
    ]),
    ['--ro-bind', ROOT, '/opt/svc-server', '--ro-bind', process.execPath, '/usr/local/bin/node'],
    ['--bind', state, '/var/lib/svc-server'],
    shared.flatMap((path) => ['--bind', path, path]),
    ['/home', '/root', '/opt', '/usr/local/bin', '/var/lib'].flatMap((at) => ['--remount-ro', at]),
    ['--chdir', settings.get('WorkingDirectory')?.[0] ?? '/', '--seccomp', '3'],
  ].flat();
  const filter = openSync(program, 'r');
  try {
    return spawn('bwrap', [...words, '--', ...command], {
      env: { ...environmentOf(settings), ...environment },
      stdio: ['ignore', 'pipe', 'pipe', filter],
    });
  } finally {
    closeSync(filter);
  }
}

function environmentOf(settings: Map<string, string[]>): Record<string, string> {
  const pairs = (settings.get('Environment') ?? []).join(' ').split(' ');
  return Object.fromEntries(pairs.map((pair) => pair.split('=', 2) as [string, string]));
}
