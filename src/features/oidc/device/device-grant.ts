import type { Client } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { resourceServerOf } from '../protocol/resource-servers.js';
import { grantedScopes, scopeWords } from '../protocol/scopes.js';

/** What a device asked for (RFC 8628 §3.1), as the library checked it. */
export interface DeviceParameters {
  readonly scope?: string;
  readonly resource?: string | readonly string[];
}

/** What a device gets when it is approved. */
export interface DeviceGrant {
  readonly scopes: readonly string[];
  /** The scopes at each resource server it named (RFC 8707), those with none left out. */
  readonly resources: ReadonlyMap<string, readonly string[]>;
}

/**
 * What of a device's request a person may allow it: what it asked for, but our own APIs to our own client alone, and the
 * organization's administration to nobody but its admins.
 */
export function deviceGrant(
  params: DeviceParameters,
  client: Client & OwnMetadata,
  holder: Pick<ResourceOwner, 'isOrgAdmin' | 'orgId'>,
  baseUrl: string,
): DeviceGrant {
  const asked = scopeWords(params.scope);
  const resources = [params.resource ?? []].flat().map((resource) => {
    const there = new Set(scopeWords(resourceServerOf(resource, client, baseUrl).scope));
    return [resource, asked.filter((scope) => there.has(scope))] as const;
  });
  return {
    scopes: grantedScopes(asked, client, holder),
    resources: new Map(resources.filter(([, scopes]) => scopes.length > 0)),
  };
}

/** The scope of the code itself: everything it may be redeemed for. */
export function scopeOfCode({ scopes, resources }: DeviceGrant): string {
  return [...new Set([...scopes, ...[...resources.values()].flat()])].join(' ');
}
