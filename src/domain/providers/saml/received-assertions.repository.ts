import { hash } from 'node:crypto';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** An assertion that came, and the facts that the browser of the sign-in collects. */
export interface ReceivedAssertion {
  /** The entity id of the provider. */
  readonly issuer: string;
  /** The ID of the assertion. */
  readonly assertionId: string;
  /** The id of the answered request. */
  readonly requestId: string;
  /** The identity to collect. It is null for a refused assertion, which is spent as well. */
  readonly collectable: {
    /** The SHA-256 of the handle with which the browser collects the identity. */
    readonly handle: Buffer;
    readonly identity: object;
  } | null;
}

/**
 * Spends an assertion: true for exactly one caller, on any replica. The primary key decides. An
 * assertion stays spent when its sign-in fails later: a new sign-in brings a new one.
 *
 * @param expiresAt the time after which no replica accepts the answered request; the clean-up
 *   deletes the row afterwards
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
 * Collects the identity of an accepted assertion. An identity can be collected once, and only for
 * the request that the assertion answered.
 *
 * @param now the time; an assertion that was not collected in time is lost
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

/** Deletes the identities that no browser has collected yet. The assertions stay spent. */
export async function forgetUncollected(tx: EntityManager): Promise<void> {
  await sql(tx)`
    UPDATE saml_assertions SET collected_at = now(), identity = NULL
    WHERE handle IS NOT NULL AND collected_at IS NULL`;
}
