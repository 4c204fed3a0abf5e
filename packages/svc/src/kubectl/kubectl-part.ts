import { existsSync, rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { stepChange, type Change } from '../changes/change.js';
import { noteChange, setupNote } from '../changes/setup-note.js';
import { readTextFile } from '../changes/text-file.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { folderOf } from '../files/places.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { reachPage } from '../reach/own-reach.js';
import { clusterToken } from './cluster-token.js';
import { contextOf, isResource, type ClusterUser, type KubectlNote } from './cluster-user.js';
import { withListedClusters } from './listed-clusters.js';
import {
  addEntry,
  hasKubectl,
  kubeconfigFile,
  readKubeconfig,
  removeEntry,
  supportedApiVersion,
  type ExecEntry,
  type Kubeconfig,
} from './kubeconfig.js';

const NAME = 'kubectl';
const EXAMPLE = 'svc setup kubectl --cluster NAME --resource URI';

/**
 * `svc setup kubectl`: adds a user to the kubeconfig. kubectl then runs `svc kubectl token` before
 * a request of that user.
 */
export const kubectlPart: SetupPart = {
  name: NAME,
  summary: 'gives kubectl a token for a cluster before each request',
  values: ['cluster', 'user', 'resource'],
  help: [
    '--cluster NAME  a further cluster of the kubeconfig: makes the context svc-NAME and its user',
    '--resource URI  the resource of the cluster, which your account page at the server shows',
    '--user NAME     another name for the user and the context; svc-NAME by default',
  ],
  async install(request) {
    const { context, isNamed, home, reach } = request;
    const before = noteOf(request);
    const wanted = wantedUser(request, before);
    const isListed = reach !== undefined && reach.kubernetes.length > 0;
    if (!wanted && !isListed && Object.keys(before).length === 0) {
      if (!isNamed) return leftOut(`no cluster is named. Run: ${EXAMPLE}`);
      const message = 'svc setup kubectl needs the cluster and its resource.';
      throw new CliFailure(message, `Run: ${EXAMPLE}`, STATUS.usage);
    }
    if (!hasKubectl()) {
      if (!isNamed) return leftOut('kubectl is not installed');
      throw new CliFailure('kubectl is not installed.', 'Install it, and run this again.');
    }
    if (wanted) await assertWritable(request, wanted, before);
    const known = { ...before, ...(wanted && { [wanted.name]: wanted.user }) };
    const { users, notes } = reach
      ? withListedClusters(request, known, reach.kubernetes)
      : { users: known, notes: [] };
    const gone = Object.entries(before).filter(([name]) => users[name] === undefined);
    const { changes, unlisted } = entryChanges(request, users, wanted?.name);
    const fresh = Object.keys(users).filter(
      (name) =>
        users[name]?.cluster !== undefined && (before[name] === undefined || wanted?.name === name),
    );
    const file = kubeconfigFile(home);
    return {
      changes: [
        ...gone.flatMap((entry) => entryRemoval(...entry)),
        ...changes,
        ...noteChange(context, NAME, Object.keys(users).length === 0 ? undefined : users),
      ],
      notes: [
        ...notes,
        ...unlisted.map((name) => `kubectl: the server lists the cluster of ${name} no more`),
        ...(changes.length === 0 ? [] : fresh).map(
          (name) => `Then: kubectl --context ${name} get pods (the context is in ${file})`,
        ),
      ],
    };
  },
  async remove(request) {
    const { context } = request;
    const users = Object.entries(noteOf(request));
    const servers = new Set(users.map(([, { server }]) => server));
    return {
      changes: [
        ...users.flatMap(([name, user]) => entryRemoval(name, user)),
        ...[...servers].flatMap((server) => tokenRemoval(request, server)),
        ...noteChange(context, NAME, undefined),
      ],
    };
  },
};

function noteOf({ context }: SetupRequest): KubectlNote {
  return (setupNote(context, NAME) ?? {}) as KubectlNote;
}

function leftOut(reason: string): SetupPlan {
  return { changes: [], notes: [`kubectl was left out: ${reason}`] };
}

/** Returns the user to add, as the options describe it; undefined without options. */
function wantedUser(
  { context, options, home }: SetupRequest,
  before: KubectlNote,
): { readonly name: string; readonly user: ClusterUser } | undefined {
  const cluster = options.value('cluster');
  const given = options.value('user');
  const resource = options.value('resource');
  if (cluster === undefined && given === undefined && resource === undefined) return undefined;
  const name = given ?? contextOf(cluster ?? 'cluster');
  if (!/^[\w-]{1,64}$/.test(name)) {
    const whatToDo = 'Choose one of letters, digits, "_" and "-".';
    throw new CliFailure(`${name} is no name for a user.`, whatToDo, STATUS.usage);
  }
  const old = before[name];
  const uri = resource ?? old?.resource;
  if (uri === undefined || !isResource(uri)) {
    const message = uri === undefined ? '--resource is missing.' : `${uri} is not an absolute URI.`;
    const whatToDo = `${reachPage(context.server())} shows the resource of each cluster.`;
    throw new CliFailure(message, whatToDo, STATUS.usage);
  }
  const kubeconfig = old?.kubeconfig ?? kubeconfigFile(home);
  const isNewFile = old?.isNewFile ?? !existsSync(kubeconfig);
  const inCluster = cluster ?? old?.cluster;
  const user = {
    server: context.server(),
    resource: uri,
    ...(inCluster === undefined ? {} : { cluster: inCluster }),
    kubeconfig,
    ...(isNewFile ? { isNewFile } : {}),
  };
  return { name, user };
}

/**
 * Checks, before anything is written, that the server gives this user tokens for a cluster.
 *
 * @throws CliFailure for a cluster that does not admit the user
 */
async function assertReached({ context, reach }: SetupRequest, resource: string): Promise<void> {
  if (!reach) {
    // A server of an earlier version has no list, so the command asks it for a token to find out.
    await clusterToken(context, resource);
    return;
  }
  if (reach.kubernetes.some((cluster) => cluster.resource === resource)) return;
  const server = context.server();
  const message = `${new URL(server).host} lists no cluster ${resource} for you.`;
  const whatToDo = `${reachPage(server)} shows the clusters that you reach.`;
  throw new CliFailure(message, whatToDo, STATUS.refused);
}

/** Returns true if the server's list lacks the cluster of a user in the kubeconfig. */
function isUnlisted({ context, reach }: SetupRequest, user: ClusterUser): boolean {
  if (!reach || user.server !== context.server()) return false;
  return !reach.kubernetes.some(({ resource }) => resource === user.resource);
}

/**
 * Returns the changes that write users into kubeconfigs. A user of an earlier setup is not written
 * again if the server does not list its cluster: `unlisted` names it.
 *
 * @param wanted the name of the user that the options describe, which was checked
 */
function entryChanges(
  request: SetupRequest,
  users: KubectlNote,
  wanted: string | undefined,
): { readonly changes: Change[]; readonly unlisted: string[] } {
  const changes: Change[] = [];
  const unlisted: string[] = [];
  for (const [name, user] of Object.entries(users)) {
    const ofEntry = entryChange(request, name, user);
    if (ofEntry.length > 0 && name !== wanted && isUnlisted(request, user)) unlisted.push(name);
    else changes.push(...ofEntry);
  }
  return { changes, unlisted };
}

/**
 * Checks the user that the options describe, and asks the server about its cluster if anything
 * would be written.
 *
 * @throws CliFailure for a user that must not be written
 */
async function assertWritable(
  request: SetupRequest,
  { name, user }: { readonly name: string; readonly user: ClusterUser },
  before: KubectlNote,
): Promise<void> {
  assertFree(name, user, before);
  const isNoted = isDeepStrictEqual(before[name], user);
  if (isNoted && entryChange(request, name, user).length === 0) return;
  await assertReached(request, user.resource);
}

/**
 * Checks that a user can be written into the kubeconfig.
 *
 * @throws CliFailure for a cluster that `kubectl` does not know, and if a user or context of the
 *   same name was not made by the setup
 */
function assertFree(name: string, { cluster }: ClusterUser, before: KubectlNote): void {
  const { clusters, users, contexts } = readKubeconfig();
  if (cluster !== undefined && !clusters.includes(cluster)) {
    const known = clusters.length === 0 ? 'none' : clusters.join(', ');
    const whatToDo = `It knows ${known}. Add one: kubectl config set-cluster ${cluster} --server URL`;
    throw new CliFailure(`kubectl knows no cluster ${cluster}.`, whatToDo);
  }
  if (before[name] === undefined && (users.has(name) || contexts.has(name))) {
    const message = `The kubeconfig has a user or context ${name} already.`;
    throw new CliFailure(message, 'Choose another name: --user NAME');
  }
}

/**
 * Returns the change that writes a user, with the plugin to run, into a kubeconfig; an empty list
 * if the same user is there already.
 */
function entryChange(request: SetupRequest, name: string, user: ClusterUser): Change[] {
  const { kubeconfig, cluster, server, resource } = user;
  const exec: ExecEntry = {
    apiVersion: supportedApiVersion(),
    command: request.program,
    args: ['kubectl', 'token', '--server', server, '--resource', resource],
  };
  if (existsSync(kubeconfig) && isInPlace(readKubeconfig(kubeconfig), name, exec, cluster)) {
    return [];
  }
  const line = [exec.command, ...(exec.args ?? [])].join(' ');
  const lines = [
    `${kubeconfig}:`,
    `+user ${name}: exec ${line} (${exec.apiVersion})`,
    ...(cluster === undefined ? [] : [contextLine(name, cluster)]),
    ...(hasComments(kubeconfig)
      ? ['kubectl writes the whole file again: its comments are lost.']
      : []),
  ];
  return [{ description: lines, apply: () => addEntry(kubeconfig, { name, exec, cluster }) }];
}

/**
 * Describes a context to the user, with the URL of the API server, because that server will get the
 * tokens.
 */
function contextLine(name: string, cluster: string): string {
  const address = readKubeconfig().servers.get(cluster);
  const where = address ? ` at ${address}` : '';
  return `+context ${name}: cluster ${cluster}${where}, user ${name}`;
}

function hasComments(path: string): boolean {
  return /(?:^|\s)#/m.test(readTextFile(path).bytes ?? '');
}

function isInPlace(
  { users, contexts }: Kubeconfig,
  name: string,
  exec: ExecEntry,
  cluster: string | undefined,
): boolean {
  const { apiVersion, command, args } = users.get(name) ?? {};
  const context = contexts.get(name);
  return (
    isDeepStrictEqual({ apiVersion, command, args }, exec) &&
    (cluster === undefined || (context?.cluster === cluster && context.user === name))
  );
}

/**
 * Returns the change that removes a user from a kubeconfig. The file is also removed if the setup
 * created it and nothing else is in it.
 */
function entryRemoval(name: string, { kubeconfig, isNewFile }: ClusterUser): Change[] {
  if (!existsSync(kubeconfig)) return [];
  return [
    stepChange(`remove the user and the context ${name} from ${kubeconfig}`, () => {
      removeEntry(kubeconfig, name);
      const { clusters, users, contexts } = readKubeconfig(kubeconfig);
      const isEmpty = clusters.length + users.size + contexts.size === 0;
      if (isNewFile === true && isEmpty) rmSync(kubeconfig);
    }),
  ];
}

function tokenRemoval({ context }: SetupRequest, server: string): Change[] {
  const folder = folderOf(context.places.state, server);
  const path = folder.file('kubectl');
  if (!existsSync(path)) return [];
  return [stepChange(`remove ${path} (tokens for clusters)`, () => folder.remove('kubectl'))];
}
