import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  BY_DELETED_ROW,
  idsOf,
  type LockedUser,
  type Revocable,
  type RevocationScope,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { newUuid } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { VerifiedRegistration } from './webauthn-ceremonies.service.js';

/** An enrolled key, as its user sees it. */
export interface Authenticator {
  readonly id: string;
  readonly name: string;
  readonly aaguid: string | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly userVerification: boolean;
}

/** The credential id of a key and its transports, by which a browser finds the key. */
export interface Credential {
  readonly id: Buffer;
  readonly transports: string[];
  readonly userVerification: boolean;
}

/**
 * The stored facts of a security key by which its signature in a login (an assertion) is verified.
 */
export interface AssertingKey {
  readonly id: string;
  readonly userId: string;
  /**
   * The user id that is stored in the key. It differs from the present id of the user if an admin
   * separated the user from a SCIM record.
   */
  readonly handleId: string;
  readonly orgId: string | null;
  readonly publicKey: string;
  readonly userVerification: boolean;
  /** The name that the user gave the key, and the AAGUID of its model, for the audit log. */
  readonly name: string;
  readonly aaguid: string | null;
  /** The format of the attestation at enrollment: `packed` or `fido-u2f`. */
  readonly attestation: string;
}

interface Row {
  id: string;
  name: string;
  aaguid: string | null;
  created_at: Date;
  last_used_at: Date | null;
  user_verification: boolean;
}

/**
 * Stores the enrolled security keys of users, and removes them if an account loses its credentials.
 */
@Injectable()
export class AuthenticatorsRepository implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.securityKeys;
  /**
   * The events at which {@link revoke} removes keys. The event `account-deleted` is not among them,
   * because a foreign key deletes the keys together with the user.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set(['credentials-revoked']);
  readonly endedByForeignKey = BY_DELETED_ROW;
  /**
   * Null, because the keys stay even if a failover of the database has lost commits. A removed user
   * may then exist again, but the next login needs the identity provider as well as the key.
   */
  readonly revokeOnRecord = null;

  /**
   * Adds a key of a user, unless the user has too many keys. The caller has locked the row of the
   * user, so that if two requests add a key, the second counts the key of the first.
   *
   * @param fewerThan the key is added only if the user has fewer keys than this: 1 for a first key
   * @param isUsed true if the ceremony counts as the first use of the key
   * @returns the key; undefined if the user has too many keys
   * @throws QueryFailedError 23505 if a user has registered the credential already
   */
  async add(
    tx: EntityManager,
    userId: string,
    { name, ...key }: VerifiedRegistration & { readonly name: string },
    { fewerThan, isUsed }: { readonly fewerThan: number; readonly isUsed: boolean },
  ): Promise<Authenticator | undefined> {
    const [row] = await sql<Row>(tx)`
      INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid,
                                  user_verification, transports, name, last_used_at)
      SELECT ${newUuid()}::uuid, ${userId}::uuid, ${key.credentialId}::bytea, ${key.publicKey}::text,
             ${key.signCount}::bigint, ${key.attestation}::text, ${key.aaguid}::uuid, ${key.canVerifyUser}::boolean,
             ${key.transports}::text[], ${name}::text,
             CASE WHEN ${isUsed}::boolean THEN now() END
      WHERE (SELECT count(*) FROM authenticators WHERE user_id = ${userId}) < ${fewerThan}
      RETURNING id, name, aaguid, created_at, last_used_at, user_verification`;
    return row && authenticator(row);
  }

  /** Lists the keys of a user, the oldest first. */
  async list(tx: EntityManager, userId: string): Promise<Authenticator[]> {
    const rows = await sql<Row>(tx)`
      SELECT id, name, aaguid, created_at, last_used_at, user_verification
      FROM authenticators WHERE user_id = ${userId}
      ORDER BY created_at, id`;
    return rows.map(authenticator);
  }

  /** Finds a key of a user by its id; undefined if the user has no such key. */
  async find(tx: EntityManager, userId: string, id: string): Promise<Authenticator | undefined> {
    const keys = await this.list(tx, userId);
    return keys.find((key) => key.id === id);
  }

  /**
   * Lists the WebAuthn credentials of a user, which are named to the browser in the options of a
   * ceremony.
   */
  listCredentials(tx: EntityManager, userId: string): Promise<Credential[]> {
    return sql<Credential>(tx)`
      SELECT credential_id AS id, transports, user_verification AS "userVerification"
      FROM authenticators WHERE user_id = ${userId}
      ORDER BY created_at, id`;
  }

  /**
   * Finds the key that made a WebAuthn credential, by the credential id; undefined if none is
   * enrolled with this id.
   */
  async findByCredentialId(
    tx: EntityManager,
    credentialId: Buffer,
  ): Promise<AssertingKey | undefined> {
    const [row] = await sql<AssertingKey>(tx)`
      SELECT k.id, k.user_id AS "userId", coalesce(k.handle_id, k.user_id) AS "handleId",
             u.org_id AS "orgId", k.public_key AS "publicKey",
             k.user_verification AS "userVerification", k.name, k.aaguid, k.attestation
      FROM authenticators k JOIN users u ON u.id = k.user_id
      WHERE k.credential_id = ${credentialId}`;
    return row;
  }

  /**
   * Stores the signature counter of an assertion (WebAuthn Level 2 §7.2 step 21), by which a copied
   * key is noticed. The counter must be higher than before, or stay at zero for a key without a
   * counter. One conditional statement decides, so that if two copies of a key send the same count,
   * one is refused.
   *
   * @returns `stuck` for a counter that is not higher, `gone` for a key that was removed meanwhile
   */
  async advanceCounter(
    tx: EntityManager,
    id: string,
    signCount: number,
  ): Promise<'advanced' | 'stuck' | 'gone'> {
    const advanced = await sql<{ id: string }>(tx)`
      UPDATE authenticators SET sign_count = ${signCount}, last_used_at = now()
      WHERE id = ${id} AND (sign_count < ${signCount} OR (sign_count = 0 AND ${signCount} = 0))
      RETURNING id`;
    if (advanced.length === 1) return 'advanced';
    const left = await sql<{ id: string }>(tx)`SELECT id FROM authenticators WHERE id = ${id}`;
    return left.length === 1 ? 'stuck' : 'gone';
  }

  /** Removes every security key of some users. The caller has locked the rows of the users. */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const removed = await sql<{ id: string }>(tx)`
      DELETE FROM authenticators WHERE user_id = ANY (${idsOf(users)}::uuid[]) RETURNING id`;
    return { keys: removed.length };
  }

  /** Counts the security keys that {@link revoke} would remove. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ keys: number }>(tx)`
      SELECT count(*)::int AS keys FROM authenticators WHERE user_id = ${id}`;
    return { keys: row?.keys ?? 0 };
  }

  /**
   * Removes one key of a user, but never the last one.
   *
   * @throws DomainError last_key for the only key, so that the transaction is rolled back
   */
  async revokeOfKey(tx: EntityManager, { id }: LockedUser, keyId: string): Promise<RevokedCounts> {
    const removed = await sql<{ id: string }>(tx)`
      DELETE FROM authenticators WHERE id = ${keyId} AND user_id = ${id}
        AND EXISTS (SELECT 1 FROM authenticators WHERE user_id = ${id} AND id <> ${keyId})
      RETURNING id`;
    if (removed.length === 1) return {};
    throw new DomainError(
      'last_key',
      'This is your only key. Add another one first, then remove this one.',
    );
  }

  /**
   * Renames a key of a user. Returns the key and its earlier name; undefined if the user has no
   * such key.
   */
  async rename(
    tx: EntityManager,
    userId: string,
    id: string,
    name: string,
  ): Promise<{ readonly key: Authenticator; readonly earlierName: string } | undefined> {
    const [row] = await sql<Row & { earlier_name: string }>(tx)`
      UPDATE authenticators k SET name = ${name}
      FROM (SELECT id, name FROM authenticators WHERE id = ${id} AND user_id = ${userId} FOR UPDATE) earlier
      WHERE k.id = earlier.id
      RETURNING k.id, k.name, k.aaguid, k.created_at, k.last_used_at, k.user_verification, earlier.name AS earlier_name`;
    return row && { key: authenticator(row), earlierName: row.earlier_name };
  }
}

function authenticator(row: Row): Authenticator {
  return {
    id: row.id,
    name: row.name,
    aaguid: row.aaguid,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    userVerification: row.user_verification,
  };
}
