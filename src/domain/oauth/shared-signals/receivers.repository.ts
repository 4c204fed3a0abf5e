import { fragment, sql } from '#platform/database/statements/sql.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { artifactStands } from '#domain/access/issuance/standing-rows.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The OAuth scope for reading streams of security events, and the scope for all other requests
 * about them.
 */
export const READ_SCOPE = 'ssf.read';
export const MANAGE_SCOPE = 'ssf.manage';

/** The OAuth scopes for the endpoints of Shared Signals. */
export const SIGNAL_SCOPES = [READ_SCOPE, MANAGE_SCOPE] as const;

/**
 * Returns true if the name of a scope is reserved for Shared Signals, even if no such scope exists.
 */
export function isSignalScope(scope: string): boolean {
  return scope === 'ssf' || scope.startsWith('ssf.');
}

/**
 * Returns the resource (RFC 8707 §2) of the tokens with which an application uses the endpoints of
 * Shared Signals.
 */
export function signalsResource(baseUrl: string): string {
  return `${baseUrl}/ssf`;
}

/**
 * The way in which events name a person to an application: by issuer and subject, or by e-mail
 * address.
 */
export type SubjectFormat = 'iss_sub' | 'email';

/**
 * The permission of an application to receive security events about the people of its organization.
 */
export interface SignalReceiver {
  readonly subjectFormat: SubjectFormat;
  readonly allowedAt: Date;
}

/**
 * Allows an application to have a stream of security events, or changes the way in which its events
 * name people.
 */
export async function allowReceiver(
  tx: EntityManager,
  clientId: string,
  subjectFormat: SubjectFormat,
  adminId: string,
): Promise<void> {
  await sql(tx)`
    INSERT INTO signal_receivers (client_id, subject_format, allowed_by)
    VALUES (${clientId}, ${subjectFormat}, ${adminId})
    ON CONFLICT (client_id) DO UPDATE SET subject_format = excluded.subject_format`;
}

/**
 * Ends the permission of an application to receive security events, and deletes its stream and its
 * tokens for the stream. Returns false if it had no permission.
 */
export async function withdrawReceiver(
  tx: EntityManager,
  clientId: string,
  resource: string,
): Promise<boolean> {
  await sql(tx)`
    DELETE FROM oauth_artifacts
    WHERE client_id = ${clientId} AND model = 'ClientCredentials' AND payload ->> 'aud' = ${resource}`;
  const withdrawn = await sql<{ client_id: string }>(tx)`
    DELETE FROM signal_receivers WHERE client_id = ${clientId} RETURNING client_id`;
  return withdrawn.length === 1;
}

/** Finds the permission of an application to receive security events; undefined without one. */
export async function findReceiver(
  tx: EntityManager,
  clientId: string,
): Promise<SignalReceiver | undefined> {
  const [row] = await sql<SignalReceiver>(tx)`
    SELECT subject_format AS "subjectFormat", allowed_at AS "allowedAt"
    FROM signal_receivers WHERE client_id = ${clientId}`;
  return row;
}

/** A token that an application got for itself, to use the endpoints of Shared Signals. */
export interface ReceiverToken {
  readonly clientId: string;
  readonly orgId: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The SQL condition that a token `a` has neither expired nor ended. */
export const IS_LIVE = fragment`a.expires_at > now() AND a.consumed_at IS NULL`;

/**
 * Finds an access token by its hash; undefined for any token that is not accepted. The token must
 * belong to an application of an organization that may receive security events now. If the
 * application has an owner, the owner must be active.
 */
export async function findReceiverToken(
  tx: EntityManager,
  tokenHash: Buffer,
): Promise<ReceiverToken | undefined> {
  const [row] = await sql<ReceiverToken>(tx)`
    SELECT c.id AS "clientId", c.org_id AS "orgId", a.payload
    FROM oauth_artifacts a
    JOIN oauth_clients c ON c.id = a.client_id AND c.kind = 'application' AND c.org_id IS NOT NULL
    JOIN signal_receivers r ON r.client_id = c.id
    LEFT JOIN users u ON u.id = c.owner_id
    WHERE a.model = 'ClientCredentials' AND a.id = ${tokenHash} AND ${IS_LIVE}
      AND (c.owner_id IS NULL OR u.active) AND ${artifactStands(fragment`a`)} AND ${CONFIRMED}`;
  return row;
}

/**
 * Locks the client and the token of a request, so that the token does not end until the transaction
 * does. Returns false if it has ended since the request came. The client is locked first, as in a
 * transaction that removes it with its tokens.
 */
export async function holdReceiverToken(
  tx: EntityManager,
  { clientId, tokenHash }: { readonly clientId: string; readonly tokenHash: Buffer },
): Promise<boolean> {
  const held = await sql<{ id: Buffer }>(tx)`
    WITH client AS MATERIALIZED (
      SELECT id FROM oauth_clients WHERE id = ${clientId} FOR KEY SHARE
    )
    SELECT a.id FROM oauth_artifacts a
    WHERE a.model = 'ClientCredentials' AND a.id = ${tokenHash} AND ${IS_LIVE} AND ${CONFIRMED}
      AND a.client_id IN (SELECT id FROM client)
    FOR SHARE OF a`;
  return held.length === 1;
}
