/** A user of the kubeconfig that the setup made. */
export interface ClusterUser {
  readonly server: string;
  readonly resource: string;
  readonly cluster?: string;
  /** The file with the entry. */
  readonly kubeconfig: string;
  /** True when the setup made the file. */
  readonly isNewFile?: boolean;
  /** True for a cluster that the server listed: the user goes when the cluster leaves the list. */
  readonly listed?: true;
}

/** The note of the part in `config.json`, by the names of the users. */
export type KubectlNote = Readonly<Record<string, ClusterUser>>;

/** Tells if a text is the resource of a cluster: an absolute URI without a space. */
export function isResource(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[!-~]+$/i.test(text);
}

/** Returns the name of the context and of the user of a cluster. */
export function contextOf(cluster: string): string {
  return `svc-${cluster.replaceAll(/[^\w-]+/g, '-')}`;
}
