import { CliFailure } from '../program/failure.js';

/**
 * The versions of the interface between `kubectl` and its credential plugins that the command
 * supports.
 */
export const API_VERSIONS = {
  v1: 'client.authentication.k8s.io/v1',
  v1beta1: 'client.authentication.k8s.io/v1beta1',
} as const;

const KNOWN: readonly string[] = Object.values(API_VERSIONS);

/**
 * Returns the version in which `kubectl` expects the answer, by its variable KUBERNETES_EXEC_INFO.
 * Without the variable, a user has run the command by hand, and the version is v1.
 *
 * @throws CliFailure for a version that the command does not support
 */
export function apiVersionOf(execInfo: string | undefined): string {
  if (execInfo === undefined) return API_VERSIONS.v1;
  const { apiVersion, kind } = parsed(execInfo);
  if (kind === 'ExecCredential' && typeof apiVersion === 'string' && KNOWN.includes(apiVersion)) {
    return apiVersion;
  }
  throw new CliFailure(
    `kubectl asks for ${JSON.stringify(apiVersion ?? kind ?? null)}, and svc answers v1 and v1beta1`,
    `in the kubeconfig, set apiVersion of the user to ${API_VERSIONS.v1beta1}`,
  );
}

function parsed(execInfo: string): { readonly apiVersion?: unknown; readonly kind?: unknown } {
  try {
    return Object(JSON.parse(execInfo)) as object;
  } catch (cause) {
    const message = 'KUBERNETES_EXEC_INFO is not JSON';
    throw new CliFailure(message, 'unset the variable: kubectl sets it', 1, { cause });
  }
}

/** Returns the answer for `kubectl`: one line of JSON. */
export function execCredential(
  apiVersion: string,
  { token, expires_at: expires }: { readonly token: string; readonly expires_at: string },
): string {
  const status = { expirationTimestamp: expires, token };
  return `${JSON.stringify({ apiVersion, kind: 'ExecCredential', status })}\n`;
}
