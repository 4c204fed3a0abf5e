import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';
import type { KubectlNote } from '../kubectl/cluster-user.js';
import { singleContext } from '../kubectl/kubeconfig.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { printable } from '../terminal/table.js';

/** A context that `svc setup kubectl` made, and the kubeconfig that contains it. */
export interface OwnCluster {
  /** The name of the context, and also of the entry in `users` of the kubeconfig that it uses. */
  readonly context: string;
  /** The path of the kubeconfig. */
  readonly kubeconfig: string;
}

/** Returns the contexts that `svc setup kubectl` made for this server. */
export function ownClusters(context: CommandContext): readonly (OwnCluster & {
  readonly names: readonly (string | undefined)[];
})[] {
  const note = (setupNote(context, 'kubectl') ?? {}) as KubectlNote;
  return Object.entries(note)
    .filter(([, { server, cluster }]) => server === context.server() && cluster !== undefined)
    .map(([name, { cluster, resource, kubeconfig }]) => ({
      context: name,
      kubeconfig,
      names: [name, cluster, resource],
    }));
}

/**
 * Returns the context of a cluster that the user names. `wanted` is the name of the context, the
 * name of the cluster in the kubeconfig, or the resource of the cluster.
 *
 * @throws CliFailure with status 2 if none or several have the name
 */
export function chosenCluster(context: CommandContext, wanted: string): OwnCluster {
  const found = ownClusters(context).filter(({ names }) => names.includes(wanted));
  const [cluster, another] = found;
  if (cluster && !another) return cluster;
  if (cluster) {
    const names = found.map((one) => one.context).join(', ');
    throw new CliFailure(`Several contexts are ${wanted}.`, `Name one: ${names}`, STATUS.usage);
  }
  const message = `svc setup kubectl made no context for ${printable(wanted)}.`;
  throw new CliFailure(message, 'Run: svc setup kubectl', STATUS.usage);
}

/**
 * Writes a kubeconfig with one cluster alone into the private folder of the server, and returns its
 * path. It has no secret: kubectl runs `svc` for a token.
 *
 * @param name the name of the file
 */
export function writeKubeconfig(
  context: CommandContext,
  cluster: OwnCluster,
  name: string,
): string {
  const folder = context.folder();
  folder.writeJson(name, singleContext(cluster.kubeconfig, cluster.context));
  return folder.file(name);
}
