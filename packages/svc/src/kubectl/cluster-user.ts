/** A user in a kubeconfig that `svc setup kubectl` made. */
export interface ClusterUser {
  readonly server: string;
  readonly resource: string;
  readonly cluster?: string;
  /** The path of the kubeconfig that contains the user. */
  readonly kubeconfig: string;
  /** True if the setup created the kubeconfig. */
  readonly isNewFile?: boolean;
  /**
   * True for a cluster from the server's list. The user is removed when the server does not list
   * the cluster any more.
   */
  readonly listed?: true;
}

/** The record of `svc setup kubectl` in `config.json`: the users that it made, by their names. */
export type KubectlNote = Readonly<Record<string, ClusterUser>>;

/**
 * Returns true if a text can be the resource indicator of a cluster (RFC 8707): an absolute URI
 * without a space.
 */
export function isResource(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[!-~]+$/i.test(text);
}

/**
 * Returns the name of a cluster's context in the kubeconfig, which is also the name of its user.
 */
export function contextOf(cluster: string): string {
  return `svc-${cluster.replaceAll(/[^\w-]+/g, '-')}`;
}
