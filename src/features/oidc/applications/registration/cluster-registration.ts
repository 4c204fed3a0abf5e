import type { ClientApplication } from '#domain/grants/clients/applications.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { OwnAudiences } from '../../protocol/resource-servers.js';

/**
 * Finds the fault of the resource of a cluster: it is an absolute URI without a fragment (RFC 8707 §2), and never an address of this
 * service.
 *
 * @returns a sentence for the user, or undefined for a resource without a fault
 */
export function resourceProblem(
  resource: string,
  { baseUrl, awsAudience }: OwnAudiences,
): string | undefined {
  const url = /^[!-~]+$/.test(resource) ? URL.parse(resource) : null;
  if (url === null) return 'resource: must be an absolute URI, such as https://prod.k8s.example';
  if (resource.includes('#')) return 'resource: must have no fragment';
  if (url.username !== '' || url.password !== '') return 'resource: must have no user information';
  if (url.origin === new URL(baseUrl).origin) return 'resource: must not be this service';
  if (resource === awsAudience) return 'resource: must not be the audience of the tokens for AWS';
  return undefined;
}

/** Returns the metadata of a cluster: those of a client that can do nothing, since a cluster is no client. */
export function clusterMetadata(name: string): Record<string, unknown> {
  return {
    client_name: name,
    token_endpoint_auth_method: 'none',
    grant_types: [],
    response_types: [],
    redirect_uris: [],
  };
}

/** Returns the name of a cluster. */
export function clusterNameOf({ metadata }: Pick<ClientApplication, 'metadata'>): string {
  return typeof metadata['client_name'] === 'string' ? metadata['client_name'] : '';
}

/**
 * Returns the metadata of a cluster after a change: only its name can change, since API servers are configured with its resource.
 *
 * @throws DomainError invalid_request for any other setting
 */
export function changedCluster(
  cluster: ClientApplication,
  { name, ...settings }: { readonly name?: string | undefined },
): Record<string, unknown> {
  const [stray] = Object.keys(settings);
  if (stray !== undefined) {
    throw new DomainError(
      'invalid_request',
      `${stray}: a kubernetes application has a name and a resource, and only the name can change`,
    );
  }
  return clusterMetadata(name ?? clusterNameOf(cluster));
}
