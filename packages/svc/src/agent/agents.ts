import { spawnSync } from 'node:child_process';
import { readCertificate, type SshCertificate } from '@svc/openssh';
import type { PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';
import { variable, variables } from '../program/environment.js';
import { CliFailure, errorCode, STATUS } from '../program/failure.js';

/**
 * The file about the ssh-agents that hold the SSH key for a server. It exists if there is such an
 * agent, or if `svc setup ssh --agent` was chosen.
 */
export const AGENTS_FILE = 'ssh/agents.json';

/**
 * The path of the private key in the folder of a server. `ssh-add` finds the certificate beside it.
 */
const KEY = 'ssh/id';

/** The longest wait for an answer of an ssh-agent, in milliseconds. */
const PATIENCE = 5_000;

/** The content of {@link AGENTS_FILE}. */
interface AgentsFile {
  /**
   * The choice of `svc setup ssh --agent`, by which each new certificate goes into the agent. It is
   * undefined without that choice.
   */
  readonly keep?: { readonly confirm: boolean } | undefined;
  readonly agents: readonly HoldingAgent[];
}

/** An agent that holds the user's key and certificate for a server. */
interface HoldingAgent {
  /**
   * The path of the socket of the agent; empty for the agent of Windows, which always has the same
   * named pipe.
   */
  readonly socket: string;
  /**
   * The time at which the agent forgets the key and the certificate, in milliseconds since 1970.
   */
  readonly until: number;
  /**
   * The public key that the agent holds, in base64. It is recorded, because a new key pair may
   * replace the key files. If it is absent, the agent holds the key of the present key files.
   */
  readonly key?: string | undefined;
}

/** The limits under which an agent holds a key, as the user chose them. */
export interface AgentLimits {
  /**
   * The seconds after which the agent forgets the key; by default the rest of the validity of the
   * certificate.
   */
  readonly seconds?: number | undefined;
  /** True if the agent asks the user before each use of the key. */
  readonly confirm: boolean;
}

/**
 * Adds the user's key and certificate for a server to the agent of this environment. An earlier key
 * and certificate for the server are first removed from the agent. The agent forgets the new ones
 * when the certificate expires, or earlier.
 *
 * @returns the earliest time at which the agent forgets them, in milliseconds since 1970
 * @throws CliFailure if there is no agent, or if it does not take the key
 */
export function addToAgent(
  folder: PrivateFolder,
  certificate: SshCertificate,
  { seconds = Infinity, confirm }: AgentLimits,
): number {
  const socket = socketHere();
  if (socket === undefined) throw noAgent();
  const start = now();
  const rest = Math.floor((certificate.validBefore - start) / 1000);
  const life = Math.min(rest, Math.floor(seconds));
  if (life < 1) throw new CliFailure('The SSH certificate has ended.', 'Run: svc ssh cert');
  const own = publicKeyIn(folder);
  takeOwnFrom(own, socket);
  const limits = ['-t', String(life), ...(confirm ? ['-c'] : [])];
  const { status, stderr, error } = sshAdd(['-q', ...limits, folder.file(KEY)], socket);
  if (errorCode(error) === 'ENOENT') {
    throw new CliFailure('ssh-add is not installed.', 'Install the OpenSSH client.');
  }
  if (status === NO_CONNECTION) throw noAgent();
  if (status !== 0) {
    const reason = stderr.trim().split('\n').at(-1) ?? '';
    throw new CliFailure(`ssh-add did not add the key: ${reason}`, 'Run: ssh-add -l');
  }
  // The agent counts `life` from the moment at which it took the key. The command does not know
  // that moment, so it records the latest possible time: `life` from now.
  record(folder, { socket, until: now() + life * 1000, key: own?.toString('base64') });
  return start + life * 1000;
}

/**
 * Puts the certificate into the agent of this environment if `svc setup ssh --agent` was chosen and
 * the agent does not hold it yet. If the choice was not made, the file about the agents is removed
 * when none of them holds the key any more. Without an agent it does nothing, because an SSH login
 * must not fail for that.
 */
export function refreshAgent(folder: PrivateFolder, certificate: SshCertificate | undefined): void {
  const { keep, agents } = readAgents(folder);
  if (keep === undefined) {
    if (agents.every(({ until }) => until <= now())) folder.remove(AGENTS_FILE);
    return;
  }
  const socket = socketHere();
  if (certificate === undefined || socket === undefined) return;
  if (ownLines(folder, socket).some((line) => serialOf(line) === certificate.serial)) return;
  try {
    addToAgent(folder, certificate, keep);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
  }
}

/** Returns the choice of `svc setup ssh --agent`; undefined if it was not made. */
export function keptInAgent(folder: PrivateFolder): AgentsFile['keep'] {
  return readAgents(folder).keep;
}

/** Records the choice of `svc setup ssh --agent`. */
export function keepInAgent(folder: PrivateFolder, keep: AgentsFile['keep']): void {
  folder.writeJson(AGENTS_FILE, { ...readAgents(folder), keep });
}

/**
 * Takes the user's key and certificate for a server out of each agent that holds them. An agent
 * that may still hold them stays in the file until they expire, so that the next call tries again.
 * The choice of `svc setup ssh --agent` also stays in the file.
 *
 * @returns the sockets of the agents that may still hold them
 */
export function takeFromAgents(folder: PrivateFolder): string[] {
  const { keep, agents } = readAgents(folder);
  if (agents.length === 0) return [];
  const left = agents.filter((agent) => !takeOwnFrom(keyOf(folder, agent), agent.socket));
  const holding = left.filter(({ until }) => until > now());
  if (keep === undefined && holding.length === 0) folder.remove(AGENTS_FILE);
  else folder.writeJson(AGENTS_FILE, { keep, agents: holding });
  return holding.map(({ socket }) => socket);
}

/** The exit status of `ssh-add` if it cannot reach an agent. */
const NO_CONNECTION = 2;

function noAgent(): CliFailure {
  return new CliFailure(
    'No ssh-agent answers in this shell.',
    'Start one: eval "$(ssh-agent)", and run it again.',
    STATUS.failed,
  );
}

/**
 * Returns the socket of the agent of this environment as a path. The path is empty for the agent of
 * Windows, and undefined if there is no agent.
 */
function socketHere(): string | undefined {
  return variable('SSH_AUTH_SOCK') ?? (process.platform === 'win32' ? '' : undefined);
}

/**
 * Returns the public key that an agent holds: the one that {@link AGENTS_FILE} records, or else
 * that of the key file. Returns undefined if neither file has a key.
 */
function keyOf(folder: PrivateFolder, { key }: HoldingAgent): Buffer | undefined {
  return key === undefined ? publicKeyIn(folder) : Buffer.from(key, 'base64');
}

/**
 * Takes the key and the certificates of a key pair out of one agent.
 *
 * @returns true if the agent holds none of them any more, or if nothing answers at its socket;
 *   false if the agent lists no key at all, because it may be locked
 */
function takeOwnFrom(own: Buffer | undefined, socket: string): boolean {
  if (own === undefined) return false;
  const { status, stdout } = sshAdd(['-L'], socket);
  if (status === NO_CONNECTION) return true;
  if (status !== 0) return false;
  const lines = linesOf(own, stdout);
  if (lines.length === 0) return true;
  return sshAdd(['-q', '-d', '-'], socket, `${lines.join('\n')}\n`).status === 0;
}

/**
 * Returns the keys and certificates of the key pair that an agent lists, one a line; none if the
 * agent does not answer.
 */
function ownLines(folder: PrivateFolder, socket: string): string[] {
  const own = publicKeyIn(folder);
  if (own === undefined) return [];
  const { status, stdout } = sshAdd(['-L'], socket);
  return status === 0 ? linesOf(own, stdout) : [];
}

/** Returns the public key of the user's key pair for the server; undefined if there is none. */
function publicKeyIn(folder: PrivateFolder): Buffer | undefined {
  return publicBlob(folder.read(`${KEY}.pub`) ?? '');
}

/**
 * Returns the lines of the output of `ssh-add -L` that have the public key `own`, or a certificate
 * for it.
 */
function linesOf(own: Buffer, list: string): string[] {
  return list.split('\n').filter((line) => publicBlob(line)?.equals(own) === true);
}

/** Returns the serial number of the certificate in a line; undefined for any other line. */
function serialOf(line: string): bigint | undefined {
  return isOfCertificate(line) ? readCertificate(line).serial : undefined;
}

const isOfCertificate = (line: string) => /^\S+-cert-v01@/.test(line);

/**
 * Returns the public key in a line of a `.pub` file, also if the line is a certificate; undefined
 * if the line has none.
 */
function publicBlob(line: string): Buffer | undefined {
  const [, blob = ''] = line.trim().split(' ');
  try {
    if (blob === '') return undefined;
    return isOfCertificate(line)
      ? readCertificate(line.trim()).publicKey
      : Buffer.from(blob, 'base64');
  } catch {
    return undefined; // another kind of certificate, which is not of svc
  }
}

function sshAdd(args: readonly string[], socket: string, input?: string) {
  return spawnSync('ssh-add', args, {
    encoding: 'utf8',
    timeout: PATIENCE,
    env: { ...variables(), ...(socket === '' ? {} : { SSH_AUTH_SOCK: socket }) },
    ...(input === undefined ? { stdio: ['ignore', 'pipe', 'pipe'] } : { input }),
  });
}

function record(folder: PrivateFolder, added: HoldingAgent): void {
  const { keep, agents } = readAgents(folder);
  const isAdded = ({ socket, key }: HoldingAgent) =>
    socket === added.socket && (key === undefined || key === added.key);
  const others = agents.filter((agent) => !isAdded(agent) && agent.until > now());
  folder.writeJson(AGENTS_FILE, { keep, agents: [...others, added] });
}

/** Reads the file about the agents. A damaged file counts as empty. */
function readAgents(folder: PrivateFolder): AgentsFile {
  try {
    const read = Object(JSON.parse(folder.read(AGENTS_FILE) ?? '{}')) as Partial<AgentsFile>;
    return { keep: read.keep, agents: Array.isArray(read.agents) ? read.agents : [] };
  } catch (error) {
    if (error instanceof SyntaxError) return { agents: [] };
    throw error;
  }
}
