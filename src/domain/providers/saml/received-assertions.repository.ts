import { hash } from 'node:crypto';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** A SAML assertion that arrived, and the facts that the browser of the sign-in collects later. */
export interface ReceivedAssertion {
  /** The entity id of the provider that issued the assertion. */
  readonly issuer: string;
  /** The ID of the assertion, which makes a second use recognizable. */
  readonly assertionId: string;
  /** The id of the authentication request that the assertion answers. */
  readonly requestId: string;
  /**
   * The identity that a browser may collect. Null for a refused assertion, which is stored only so
   * that it cannot be used again.
   */
  readonly collectable: {
    /**
     * The SHA-256 of a random value, which the browser sends once in its next request. The login
     * then goes on with the identity.
     */
    readonly handle: Buffer;
    readonly identity: object;
  } | null;
}

/**
 * Marks an assertion as used. Returns true for exactly one caller on all replicas: the primary key
 * of the row is a hash of the issuer and the assertion id. An assertion stays used if its sign-in
 * fails later, because a new sign-in brings a new assertion.
 *
 * @param expiresAt the time after which every replica refuses the request that the assertion
 *   answers; the clean-up deletes the row afterwards
 */
export async function spendAssertion(
  tx: EntityManager,
  { issuer, assertionId, requestId, collectable }: ReceivedAssertion,
  expiresAt: Date,
): Promise<boolean> {
  const id = hash('sha256', `${issuer}\0${assertionId}`, 'buffer');
  const identity = collectable && JSON.stringify(collectable.identity);
  const won = await sql<{ id: Buffer }>(tx)`
    INSERT INTO saml_assertions (id, handle, request_id, identity, expires_at)
    VALUES (${id}, ${collectable?.handle ?? null}, ${requestId}, ${identity}::jsonb, ${expiresAt})
    ON CONFLICT (id) DO NOTHING
    RETURNING id`;
  return won.length === 1;
}

/**
 * Returns the identity of an accepted assertion to the browser that began the sign-in. An identity
 * can be collected once, and only for the request that the assertion answered. Returns undefined if
 * there is no such identity.
 *
 * @param now the present time; an assertion that has expired can no longer be collected
 */
export async function collectIdentity(
  tx: EntityManager,
  {
    handle,
    requestId,
    now,
  }: { readonly handle: Buffer; readonly requestId: string; readonly now: Date },
): Promise<unknown> {
  const [row] = await sql<{ identity: unknown }>(tx)`
    UPDATE saml_assertions SET collected_at = ${now}
     WHERE handle = ${handle} AND request_id = ${requestId} AND collected_at IS NULL AND expires_at > ${now}
    RETURNING identity`;
  return row?.identity;
}

/**
 * Deletes the identities that no browser has collected yet. Their assertions stay marked as used,
 * so that they cannot be used again.
 */
export async function forgetUncollected(tx: EntityManager): Promise<void> {
  await sql(tx)`
    UPDATE saml_assertions SET collected_at = now(), identity = NULL
    WHERE handle IS NOT NULL AND collected_at IS NULL`;
}
