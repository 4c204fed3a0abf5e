import type { OwnMetadata } from './client-metadata.js';
import type { Client } from './library.js';

/**
 * An application that a user or an organization registered. Which other applications may introspect
 * its tokens (RFC 7662) depends on these two fields.
 */
export interface OwnedClient {
  readonly ownerId: string | null;
  readonly orgId: string | null;
}

/**
 * Returns true if a client may introspect a token of another client (RFC 7662 §4). Both must belong
 * to the same user or organization, and the client must be an application that authenticates. A
 * client that registered itself may not.
 */
export function mayIntrospectTokensOf(other: OwnedClient, client: Client & OwnMetadata): boolean {
  if (!authenticatesAsApplication(client)) return false;
  return client.svc_org === undefined
    ? other.ownerId === (client.svc_owner ?? null)
    : other.orgId === client.svc_org;
}

/** Returns true if a client is a registered application that authenticates. */
export function authenticatesAsApplication(client: Client & OwnMetadata): boolean {
  return client.svc_kind === 'application' && client.clientAuthMethod !== 'none';
}
