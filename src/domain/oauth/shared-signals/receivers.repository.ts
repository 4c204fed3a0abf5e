import { fragment, sql } from '#platform/database/statements/sql.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The scope that reads streams, and the scope that does everything else with them. */
export const READ_SCOPE = 'ssf.read';
export const MANAGE_SCOPE = 'ssf.manage';

/** The scopes of the endpoints of signals. */
export const SIGNAL_SCOPES = [READ_SCOPE, MANAGE_SCOPE] as const;

/** Checks whether a scope is reserved for signals, known or not. */
export function isSignalScope(scope: string): boolean {
  return scope === 'ssf' || scope.startsWith('ssf.');
}

/** Returns the resource of the tokens that open the endpoints of signals (RFC 8707 §2). */
export function signalsResource(baseUrl: string): string {
  return `${baseUrl}/ssf`;
}

/** The form in which an application hears of people. */
export type SubjectFormat = 'iss_sub' | 'email';

/** The permission of an application to receive signals. */
export interface SignalReceiver {
  readonly subjectFormat: SubjectFormat;
  readonly allowedAt: Date;
}

/** Allows an application to have a stream, or changes the form in which it hears of people. */
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
 * Ends the permission of an application, with its stream and its tokens for signals. False without
 * a permission.
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

/** Finds the permission of an application. */
export async function findReceiver(
  tx: EntityManager,
  clientId: string,
): Promise<SignalReceiver | undefined> {
  const [row] = await sql<SignalReceiver>(tx)`
    SELECT subject_format AS "subjectFormat", allowed_at AS "allowedAt"
    FROM signal_receivers WHERE client_id = ${clientId}`;
  return row;
}

/** A token of an application itself, for signals. */
export interface ReceiverToken {
  readonly clientId: string;
  readonly orgId: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

const IS_LIVE = fragment`a.expires_at > now() AND a.consumed_at IS NULL`;

/**
 * Finds the token of an application that may receive signals now. The application belongs to an
 * organization, and its owner is active.
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
      AND (c.owner_id IS NULL OR u.active) AND ${CONFIRMED}`;
  return row;
}
