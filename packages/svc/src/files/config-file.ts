import { CliFailure, STATUS } from '../program/failure.js';
import type { PrivateFolder } from './private-folder.js';

/** The content of `config.json`. Unknown members stay as they are. */
export interface CliConfig {
  /** The server that commands use without `--server`. */
  readonly server?: string;
  /** Every server that was used. */
  readonly servers?: readonly string[];
  /** Notes of `svc setup`, one member for each tool. */
  readonly setup?: Readonly<Record<string, unknown>>;
}

const NAME = 'config.json';

/** Reads `config.json`; a missing file is an empty configuration. */
export function readConfig(folder: PrivateFolder): CliConfig {
  return folder.readJson(NAME) ?? {};
}

/** Returns a note of `svc setup`; undefined before the first setup. */
export function setupNote({ setup }: CliConfig, name: string): object | undefined {
  const note = setup?.[name];
  return typeof note === 'object' && note !== null ? note : undefined;
}

/** Changes `config.json` while no other process changes it. */
export function changeConfig(
  folder: PrivateFolder,
  change: (config: CliConfig) => CliConfig,
): Promise<void> {
  return folder.withLock('config', async () => {
    folder.writeJson(NAME, change(readConfig(folder)));
  });
}

/** Makes a server the one that commands use. */
export function useServer(folder: PrivateFolder, server: string): Promise<void> {
  return changeConfig(folder, (config) => ({
    ...config,
    server,
    servers: [...new Set([...(config.servers ?? []), server])],
  }));
}

/**
 * Reads the address of a server: an origin with https, or with http on this machine. An address
 * without a scheme is https.
 *
 * @throws CliFailure with status 2
 */
export function serverAddress(text: string): string {
  const url = URL.parse?.(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`) ?? parse(text);
  const problem = addressProblem(url);
  if (url && problem === undefined) return url.origin;
  const example = 'Give an address such as https://login.example.com.';
  throw new CliFailure(`${text} ${problem ?? 'is not an address'}.`, example, STATUS.usage);
}

/**
 * The host names and IP addresses that are accepted. The commands of `svc setup` write the name
 * into paths and shell commands, so that a name such as `..` or `a;b` is refused.
 */
const HOST = /^(?:\[[\da-f:.]+\]|[\da-z_-]+(?:\.[\da-z_-]+)*\.?)$/;

function addressProblem(url: URL | null): string | undefined {
  if (!url) return 'is not an address';
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    return 'is more than an address';
  }
  if (url.pathname !== '/') return 'has a path';
  if (!HOST.test(url.hostname)) return 'has no name of a host';
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\]|.+\.localhost)$/.test(url.hostname);
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback)) return undefined;
  return 'must begin with https://';
}

/** Reads an address if `URL.parse` does not exist: before Node 22.1. */
function parse(text: string): URL | null {
  try {
    return new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`);
  } catch {
    return null;
  }
}
