import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { CommandContext } from '../command/command-context.js';
import { isOneExecutable } from '../files/own-program.js';
import { variable } from '../program/environment.js';
import { CliFailure } from '../program/failure.js';
import { OLDEST_NODE } from '../program/version.js';
import {
  clockDifference,
  differenceInWords,
  isWrong,
  SET_CLOCK,
} from '../server/clock-difference.js';
import { readToken } from '../server/stored-token.js';
import type { AnswerHeaders } from '../server/transport.js';
import { localTime } from '../terminal/table.js';

/** The result of one check of `svc doctor`. */
export interface Finding {
  readonly name: string;
  /**
   * The state of what was checked. `note` means that the user may want to do something, but need
   * not.
   */
  readonly state: 'ok' | 'note' | 'problem';
  readonly text: string;
  /** The next step; undefined if none is needed. */
  readonly what_to_do?: string;
}

const ok = (name: string, text: string): Finding => ({ name, state: 'ok', text });
const problem = (name: string, text: string, whatToDo: string): Finding => ({
  name,
  state: 'problem',
  text,
  what_to_do: whatToDo,
});

/** Checks that Node has at least version 20. */
export function checkNode(): Finding {
  const [major = 0] = process.versions.node.split('.').map(Number);
  return major >= OLDEST_NODE
    ? ok('node', `${process.version}${isOneExecutable() ? ', which is part of svc' : ''}`)
    : problem('node', `${process.version} is too old`, `Install Node ${OLDEST_NODE} or newer.`);
}

/**
 * Checks that a shell finds the `svc` command in its PATH, because users type its name, and so do
 * the commands that messages advise. ssh and git run it by its full path.
 */
export function checkPath(): Finding {
  const found = findOnPath('svc');
  if (found !== undefined) return ok('path', found);
  const whatToDo =
    process.platform === 'win32'
      ? 'Add the folder of svc.exe to Path: Settings, "Edit environment variables for your account"'
      : 'Add to ~/.profile: export PATH="$HOME/.local/bin:$PATH"';
  return problem('path', 'svc is not on the PATH: ssh and git do not find it', whatToDo);
}

/** Checks the modes of all files in the server's folder, because other users must not read them. */
export function checkFiles(context: CommandContext): Finding {
  const { path } = context.folder();
  if (!existsSync(path)) return ok('files', `${path} does not exist yet`);
  const open = readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => join(path, name))
    .concat(path)
    .filter((name) => !name.endsWith('.pub') && isOpen(name));
  return open.length === 0 || process.platform === 'win32'
    ? ok('files', path)
    : problem('files', `Other accounts can read ${open.join(', ')}`, `Run: chmod -R go= '${path}'`);
}

/**
 * Returns true if other accounts can use a file. A file that another process has just removed, and
 * a link that leads nowhere, are of no use to them.
 */
function isOpen(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0;
}

/** Checks that a login is stored and has not expired, without asking the server. */
export function checkLogin(context: CommandContext): Finding {
  try {
    const token = readToken(context.folder(), 'token');
    if (!token) return problem('login', 'You are not logged in', 'Run: svc login');
    return ok('login', `valid until ${localTime(new Date(token.expires_at))}`);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return problem('login', error.message, error.whatToDo);
  }
}

/** Checks that the server accepts the stored login, by a request for the list of keys. */
export async function checkToken(context: CommandContext): Promise<Finding> {
  try {
    const client = await context.client();
    await client.get('/v1/keys');
    return ok('token', 'the server accepts it');
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return problem('token', error.message, error.whatToDo);
  }
}

/** Checks that the server answers over TLS, and that the clocks of both machines agree. */
export async function checkServer(context: CommandContext): Promise<Finding[]> {
  const server = context.server();
  try {
    const { readDiscovery } = await import('../server/discovery.js');
    const { headers } = await readDiscovery(server, context.terminal);
    const isPlain = server.startsWith('http:');
    const tls = ok(
      'tls',
      isPlain ? 'none: the server is on this machine' : 'the certificate is trusted',
    );
    return [ok('server', server), tls, clockFinding(headers)];
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return [problem('server', error.message, error.whatToDo)];
  }
}

function clockFinding(headers: AnswerHeaders): Finding {
  const difference = clockDifference(headers);
  if (difference === undefined) return ok('clock', 'the server states no time');
  if (!isWrong(difference)) return ok('clock', 'agrees with the server');
  return problem('clock', differenceInWords(difference), SET_CLOCK);
}

/** The tools that `svc setup` can set up. */
const TOOLS = ['ssh', 'aws', 'git', 'kubectl', 'docker'] as const;

/**
 * Checks which tools are installed, and which `svc setup` has set up. A missing tool is no problem.
 */
export function checkTools(context: CommandContext): Finding[] {
  const setup = setupOf(context);
  return TOOLS.map((name): Finding => {
    if (findOnPath(name) === undefined) return { name, state: 'note', text: 'not installed' };
    if (setup[name] !== undefined) return ok(name, 'installed and set up');
    return { name, state: 'note', text: 'not set up', what_to_do: `Run: svc setup ${name}` };
  });
}

/**
 * Returns what `svc setup` has recorded in `config.json`; an empty object if the file is damaged,
 * because the check named `server` reports that fault.
 */
function setupOf(context: CommandContext): Readonly<Record<string, unknown>> {
  try {
    return context.config().setup ?? {};
  } catch {
    return {};
  }
}

/** Returns the path of a program on the PATH; undefined if it is not there. */
function findOnPath(name: string): string | undefined {
  const folders = (variable('PATH') ?? '').split(delimiter);
  const names = process.platform === 'win32' ? [name, `${name}.exe`, `${name}.cmd`] : [name];
  return folders
    .flatMap((folder) => names.map((one) => join(folder, one)))
    .find((path) => isExecutable(path));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
