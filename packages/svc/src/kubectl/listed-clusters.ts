import { existsSync } from 'node:fs';
import type { SetupRequest } from '../changes/setup-part.js';
import { HostileList, type ListedCluster } from '../reach/own-reach.js';
import { printable } from '../terminal/table.js';
import { kubeconfigFile, readKubeconfig, type Kubeconfig } from './kubeconfig.js';
import { contextOf, isResource, type ClusterUser, type KubectlNote } from './cluster-user.js';

/**
 * Returns the new record of the `users` entries that svc made in the kubeconfig. It has an entry
 * for each cluster that the server lists, and none for a cluster that the server does not list any
 * more. A listed cluster gets an entry only if it is in the kubeconfig, because only the kubeconfig
 * knows its API server and certificate authority.
 */
export function withListedClusters(
  { context, home }: SetupRequest,
  before: KubectlNote,
  listed: readonly ListedCluster[],
): { readonly users: KubectlNote; readonly notes: readonly string[] } {
  const server = context.server();
  const isListed = (user: ClusterUser) => user.server === server && user.listed === true;
  const own = Object.entries(before).filter(([, user]) => !isListed(user));
  const users = new Map<string, ClusterUser>(own);
  const notes: string[] = [];
  const kubeconfig = readKubeconfig();
  for (const { name, resource } of listed) {
    if (!isResource(resource)) throw new HostileList(server, 'a cluster with no absolute URI');
    if (own.some(([, user]) => user.server === server && user.resource === resource)) continue;
    const cluster = clusterFor(kubeconfig, name, resource);
    if (cluster === undefined) {
      notes.push(`kubectl: your kubeconfig has no cluster for ${printable(name)} (${resource})`);
      continue;
    }
    const entry = contextOf(cluster).slice(0, 64);
    const earlier = before[entry];
    const isTaken = kubeconfig.users.has(entry) || kubeconfig.contexts.has(entry);
    if (users.has(entry) || (earlier === undefined && isTaken)) {
      notes.push(`kubectl: the kubeconfig has a user or context ${entry} already`);
      continue;
    }
    users.set(entry, {
      ...fileOf(home, earlier),
      server,
      resource,
      cluster,
      listed: true,
    });
  }
  return { users: Object.fromEntries(users), notes };
}

function fileOf(home: string, earlier: ClusterUser | undefined) {
  if (earlier) {
    const { kubeconfig, isNewFile } = earlier;
    return { kubeconfig, ...(isNewFile === true ? { isNewFile } : {}) };
  }
  const kubeconfig = kubeconfigFile(home);
  return { kubeconfig, ...(existsSync(kubeconfig) ? {} : { isNewFile: true }) };
}

/**
 * Finds the cluster of the kubeconfig that a cluster of the server's list means. Its API server has
 * the origin of the resource, or the two clusters have exactly the same name. A looser comparison
 * could send tokens to the API server of another organization.
 */
function clusterFor(
  { clusters, servers }: Kubeconfig,
  name: string,
  resource: string,
): string | undefined {
  const origin = originOf(resource);
  const atResource = clusters.find(
    (cluster) => origin !== undefined && originOf(servers.get(cluster)) === origin,
  );
  return atResource ?? clusters.find((cluster) => cluster === name);
}

function originOf(address: string | undefined): string | undefined {
  try {
    const { origin, protocol } = new URL(address ?? '');
    return protocol === 'https:' ? origin : undefined;
  } catch {
    return undefined;
  }
}
