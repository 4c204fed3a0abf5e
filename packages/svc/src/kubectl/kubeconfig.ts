import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { readTextFile, toBytes, writeTextFile } from '../changes/text-file.js';
import { replaceFile } from '../files/private-folder.js';
import { randomId } from '../program/clock.js';
import { variable, variables } from '../program/environment.js';
import { CliFailure, STATUS, errorCode } from '../program/failure.js';
import { API_VERSIONS } from './exec-credential.js';

/**
 * The part of a user in a kubeconfig that says which plugin to run, as `kubectl config view -o
 * json` shows it.
 */
export interface ExecEntry {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
}

/** The parts of a kubeconfig that `svc setup` reads. */
export interface Kubeconfig {
  readonly clusters: readonly string[];
  /** The URLs of the API servers, by the names of the clusters. */
  readonly servers: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, ExecEntry | undefined>;
  readonly contexts: ReadonlyMap<string, { readonly cluster?: string; readonly user?: string }>;
  readonly currentContext: string;
}

/**
 * Returns the file that `kubectl config` changes. It is the first existing file in the variable
 * KUBECONFIG, or else the last file in it. Without the variable it is `~/.kube/config`.
 */
export function kubeconfigFile(home: string): string {
  const files = (variable('KUBECONFIG') ?? '').split(delimiter).filter((path) => path !== '');
  return files.find((path) => existsSync(path)) ?? files.at(-1) ?? join(home, '.kube', 'config');
}

/** Returns true if `kubectl` is installed. */
export function hasKubectl(): boolean {
  return (
    errorCode(spawnSync('kubectl', ['version', '--client'], { stdio: 'ignore' }).error) ===
    undefined
  );
}

/**
 * Returns the version of the plugin interface to write into the kubeconfig. It is v1 for kubectl
 * 1.22 and later, and v1beta1 for older versions, which do not know v1.
 */
export function supportedApiVersion(): string {
  const version = JSON.parse(kubectl(['version', '--client', '-o', 'json'])) as {
    readonly clientVersion?: { readonly major?: string; readonly minor?: string };
  };
  const { major = '', minor = '' } = version.clientVersion ?? {};
  const isNew = parseInt(major, 10) > 1 || parseInt(minor, 10) >= 22;
  return isNew ? API_VERSIONS.v1 : API_VERSIONS.v1beta1;
}

/**
 * Reads a kubeconfig by `kubectl`. Without a file it reads all files that `kubectl` merges.
 * `kubectl` leaves all secrets out.
 */
export function readKubeconfig(file?: string): Kubeconfig {
  const view = JSON.parse(kubectl(['config', 'view', '-o', 'json'], file)) as {
    readonly clusters?:
      readonly { readonly name: string; readonly cluster?: { readonly server?: string } }[] | null;
    readonly users?:
      readonly { readonly name: string; readonly user?: { exec?: ExecEntry } }[] | null;
    readonly contexts?: readonly { readonly name: string; readonly context?: object }[] | null;
    readonly 'current-context'?: string;
  };
  return {
    clusters: (view.clusters ?? []).map(({ name }) => name),
    servers: new Map(
      (view.clusters ?? []).map(({ name, cluster }) => [name, cluster?.server ?? '']),
    ),
    users: new Map((view.users ?? []).map(({ name, user }) => [name, user?.exec])),
    contexts: new Map((view.contexts ?? []).map(({ name, context = {} }) => [name, context])),
    currentContext: view['current-context'] ?? '',
  };
}

/**
 * A user to write into a kubeconfig. If its cluster is known, a context of the same name is also
 * written.
 */
export interface NewEntry {
  readonly name: string;
  readonly exec: ExecEntry;
  readonly cluster?: string | undefined;
}

/**
 * A kubeconfig as `kubectl config view --raw -o json` prints it. Only the members that the command
 * changes have types.
 */
interface RawKubeconfig {
  readonly users?: readonly { readonly name: string }[] | null;
  readonly contexts?: readonly { readonly name: string; readonly context?: object }[] | null;
  readonly 'current-context'?: string;
}

/** Writes a user into a kubeconfig. It replaces a user of the same name. */
export function addEntry(path: string, { name, exec, cluster }: NewEntry): void {
  rewrite(path, (config) => {
    const plugin = { ...exec, interactiveMode: 'Never', provideClusterInfo: false };
    const context = cluster === undefined ? [] : [{ name, context: { cluster, user: name } }];
    return {
      ...config,
      users: [...others(config.users, name), { name, user: { exec: plugin } }],
      contexts: [...others(config.contexts, cluster && name), ...context],
    };
  });
}

/**
 * Removes a user from a kubeconfig. The context of the same name is removed if it belongs to that
 * user.
 */
export function removeEntry(path: string, name: string): void {
  rewrite(path, (config) => {
    const isOwn = config.contexts?.some(
      (one) => one.name === name && (one.context as { user?: string }).user === name,
    );
    return {
      ...config,
      users: others(config.users, name),
      ...(isOwn ? { contexts: others(config.contexts, name) } : {}),
      ...(isOwn && config['current-context'] === name ? { 'current-context': '' } : {}),
    };
  });
}

function others<Named extends { readonly name: string }>(
  list: readonly Named[] | null | undefined,
  name: string | undefined,
): Named[] {
  return (list ?? []).filter((one) => one.name !== name);
}

/**
 * Changes a kubeconfig. `kubectl` reads the file and writes the new file in its own form. So the
 * removal of an entry restores every byte of a file that `kubectl` wrote.
 * `kubectl config set-credentials` is not used, because it splits arguments at commas, and crashes
 * in Debian's kubectl 1.20.
 */
function rewrite(path: string, edit: (config: RawKubeconfig) => object): void {
  const file = readTextFile(path);
  const view = file.bytes === undefined ? '{}' : kubectl([...VIEW, '-o', 'json'], file.target);
  const next = { apiVersion: 'v1', kind: 'Config', ...edit(JSON.parse(view) as RawKubeconfig) };
  mkdirSync(dirname(file.target), { recursive: true, mode: 0o700 });
  const draft = `${file.target}.svc-${randomId()}`;
  try {
    replaceFile(draft, JSON.stringify(next), 0o600);
    writeTextFile(file, { bytes: toBytes(kubectl(VIEW, draft)) });
  } finally {
    rmSync(draft, { force: true });
  }
}

const VIEW = ['config', 'view', '--raw'];

/**
 * Runs `kubectl` and returns its standard output.
 *
 * @throws CliFailure if it is missing or fails
 */
function kubectl(args: readonly string[], kubeconfig?: string): string {
  const env = { ...variables(), ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }) };
  const { status, stdout, stderr, error } = spawnSync('kubectl', args, { env, encoding: 'utf8' });
  if (errorCode(error) === 'ENOENT') {
    throw new CliFailure('kubectl is not installed.', 'Install it, and run this again.');
  }
  if (status === 0) return stdout;
  const reason = (stderr ?? '').trim().split('\n', 1)[0] ?? '';
  const message = `kubectl ${args.slice(0, 2).join(' ')} failed: ${reason || `status ${status}`}`;
  throw new CliFailure(message, 'Check the kubeconfig: kubectl config view', STATUS.failed);
}

/**
 * Returns a new kubeconfig with a single context of an existing one, as its current context. Of the
 * user of the context it takes only the plugin to run, and no stored credential.
 *
 * @throws CliFailure if the kubeconfig has no such context with a plugin
 */
export function singleContext(file: string, name: string): object {
  const view = JSON.parse(kubectl([...VIEW, '--flatten', '-o', 'json'], file)) as {
    readonly clusters?: readonly { readonly name: string }[] | null;
    readonly users?: readonly { readonly name: string; readonly user?: { exec?: object } }[] | null;
    readonly contexts?:
      | readonly { readonly name: string; readonly context?: { cluster?: string; user?: string } }[]
      | null;
  };
  const context = view.contexts?.find((one) => one.name === name);
  const cluster = view.clusters?.find((one) => one.name === context?.context?.cluster);
  const exec = view.users?.find((one) => one.name === context?.context?.user)?.user?.exec;
  if (!context || !cluster || !exec) {
    const message = `${file} has no context ${name} of svc any more.`;
    throw new CliFailure(message, 'Run: svc setup kubectl', STATUS.failed);
  }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [cluster],
    users: [{ name: context.context?.user, user: { exec } }],
    contexts: [context],
    'current-context': name,
  };
}
