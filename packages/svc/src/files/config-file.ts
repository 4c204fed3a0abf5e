import { CliFailure, STATUS } from '../program/failure.js';
import type { PrivateFolder } from './private-folder.js';

/** The content of `config.json`. Unknown members are kept. */
export interface CliConfig {
  /** The server that commands use without `--server`. */
  readonly server?: string;
  /** Every server to which the user has logged in, or that `svc use` has chosen. */
  readonly servers?: readonly string[];
  /** The records of `svc setup` by their names: the states of tools, and further facts. */
  readonly setup?: Readonly<Record<string, unknown>>;
}

const NAME = 'config.json';

/** Reads `config.json`; a missing file is an empty configuration. */
export function readConfig(folder: PrivateFolder): CliConfig {
  return folder.readJson(NAME) ?? {};
}

/** Returns what `svc setup` recorded for one tool; undefined before its first setup. */
export function setupNote({ setup }: CliConfig, name: string): object | undefined {
  const note = setup?.[name];
  return typeof note === 'object' && note !== null ? note : undefined;
}

/** Changes `config.json` under a lock, so that no other process changes it at the same time. */
export function changeConfig(
  folder: PrivateFolder,
  change: (config: CliConfig) => CliConfig,
): Promise<void> {
  return folder.withLock('config', async () => {
    folder.writeJson(NAME, change(readConfig(folder)));
  });
}

/** Makes a server the default of all commands. */
export function useServer(folder: PrivateFolder, server: string): Promise<void> {
  return changeConfig(folder, (config) => ({
    ...config,
    server,
    servers: [...new Set([...(config.servers ?? []), server])],
  }));
}

/**
 * Parses the URL of a server: an origin with https, or with http on this machine. A text without a
 * scheme gets https.
 *
 * @throws CliFailure with status 2 for any other text
 */
export function serverAddress(text: string): string {
  const url = URL.parse?.(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`) ?? parse(text);
  const problem = addressProblem(url);
  if (url && problem === undefined) return url.origin;
  const example = 'Give a URL such as https://login.example.com.';
  throw new CliFailure(`${text} ${problem ?? 'is not a URL'}.`, example, STATUS.usage);
}

/**
 * Matches the host names and IP addresses that are accepted. `svc setup` writes the name into paths
 * and shell commands, so a name such as `..` or `a;b` is refused.
 */
const HOST = /^(?:\[[\da-f:.]+\]|[\da-z_-]+(?:\.[\da-z_-]+)*\.?)$/;

function addressProblem(url: URL | null): string | undefined {
  if (!url) return 'is not a URL';
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    return 'is more than the URL of a server';
  }
  if (url.pathname !== '/') return 'has a path';
  if (!HOST.test(url.hostname)) return 'has no name of a host';
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\]|.+\.localhost)$/.test(url.hostname);
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback)) return undefined;
  return 'must begin with https://';
}

/** Parses a server URL in versions of Node before 22.1, which have no `URL.parse`. */
function parse(text: string): URL | null {
  try {
    return new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`);
  } catch {
    return null;
  }
}
