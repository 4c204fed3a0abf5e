/** A user in the kubeconfig that `svc setup kubectl` made. */
export interface ClusterUser {
  readonly server: string;
  readonly resource: string;
  readonly cluster?: string;
  /** The path of the kubeconfig with the entry. */
  readonly kubeconfig: string;
  /** True if the setup created that file. */
  readonly isNewFile?: boolean;
  /**
   * True for a cluster that the server listed. The user is removed when the server does not list
   * the cluster any more.
   */
  readonly listed?: true;
}

/** The note of the part in `config.json`: its users by their names. */
export type KubectlNote = Readonly<Record<string, ClusterUser>>;

/** Returns true if a text is the resource of a cluster: an absolute URI without a space. */
export function isResource(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[!-~]+$/i.test(text);
}

/**
 * Returns the name of a cluster's context in the kubeconfig, which is also the name of its user.
 */
export function contextOf(cluster: string): string {
  return `svc-${cluster.replaceAll(/[^\w-]+/g, '-')}`;
}
