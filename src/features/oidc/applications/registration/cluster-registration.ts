import type { ClientApplication } from '#domain/oauth/applications/applications.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { resourceKey } from '#domain/oauth/clients/resource-key.js';
import { isOwnOrigin, type OwnAudiences } from '../../protocol/resource-servers.js';

/** Matches the name at the end of a cluster's resource `urn:svc:ORGANIZATION:NAME`. */
const URN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * Finds the fault of a cluster's resource, which is the audience of its tokens (RFC 8707 §2). A
 * resource has one of two forms. The first is `urn:svc:`, the id of the organization, `:` and a
 * name. The second is an https URL of another service in the spelling of WHATWG URL. The caller
 * checks that the organization has proven the domain of the URL.
 *
 * @returns a sentence for the user, or undefined for a resource without a fault
 */
export function resourceProblem(
  resource: string,
  orgId: string,
  own: OwnAudiences,
): string | undefined {
  if (resource === own.awsAudience || resourceKey(resource) === resourceKey(own.awsAudience)) {
    return 'resource: must not be the audience of the tokens for AWS';
  }
  const prefix = `urn:svc:${orgId}:`;
  if (resource.startsWith(prefix) && URN_NAME.test(resource.slice(prefix.length))) return undefined;
  const url = /^[!-~]+$/.test(resource) ? URL.parse(resource) : null;
  if (url?.protocol !== 'https:') {
    return `resource: must be an https URL in a domain that your organization has proven, or ${prefix} and a name`;
  }
  if (resource.includes('#')) return 'resource: must have no fragment';
  if (url.username !== '' || url.password !== '') return 'resource: must have no user information';
  // A subdomain of this service's host can be the issuer of an organization, which signs tokens for
  // AWS. It belongs to this service, and is no cluster.
  const isIssuer = url.hostname.endsWith(`.${new URL(own.baseUrl).hostname}`);
  if (isIssuer || isOwnOrigin(url, own)) return 'resource: must not be this service';
  const key = resourceKey(resource);
  if (resource !== key && `${resource}/` !== key) return `resource: must be written as ${key}`;
  return undefined;
}

/**
 * Returns the host of a cluster's resource, because the organization must have proven its domain;
 * undefined for a `urn:`.
 */
export function hostOfResource(resource: string): string | undefined {
  const url = URL.parse(resource);
  return url?.protocol === 'https:' ? url.hostname : undefined;
}

/**
 * Returns the client metadata of a cluster. The metadata allow no grant type, because a cluster
 * itself requests no tokens.
 */
export function clusterMetadata(name: string): Record<string, unknown> {
  return {
    client_name: name,
    token_endpoint_auth_method: 'none',
    grant_types: [],
    response_types: [],
    redirect_uris: [],
  };
}

/** Returns the name of a cluster; an empty string if its metadata has none. */
export function clusterNameOf({ metadata }: Pick<ClientApplication, 'metadata'>): string {
  return typeof metadata['client_name'] === 'string' ? metadata['client_name'] : '';
}

/**
 * Returns the metadata of a cluster after a change. Only its name can change, because API servers
 * are configured with its resource.
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
