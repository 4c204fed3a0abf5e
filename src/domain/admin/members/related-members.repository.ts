import type { Member } from '#domain/directory/users.repository.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The relation of another account to a member. `twin_of`: the account is a SCIM record, and the
 * member signed in with an e-mail address of that record. `twin`: the reverse, the account signed
 * in with an e-mail address of the member, who is a SCIM record. `linked`: each is deactivated when
 * the other is deactivated or removed. `holder`: the account signs in with the userName of the
 * member. `shares_address`: both have the same e-mail address, and none of the other relations.
 */
export type Relation = 'twin_of' | 'twin' | 'linked' | 'holder' | 'shares_address';

/** Another account that may be the same person as a member. */
export interface RelatedMember {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly active: boolean;
  readonly relation: Relation;
}

type Found = Omit<RelatedMember, 'relation'>;

/**
 * The most related accounts that the page of a member lists, because many records may have the same
 * e-mail address.
 */
const MOST_RELATED = 50;

/**
 * Finds the accounts that may be the same person as a member, with the {@link Relation} of each;
 * empty for most members.
 */
export async function readRelated(
  tx: EntityManager,
  orgId: string,
  { id, ties }: Member,
): Promise<RelatedMember[]> {
  const { twinOf, twins, linkedTo, withheldAddress, sharedAddress } = ties;
  const tied = [...twinOf, ...twins, ...linkedTo];
  if (tied.length === 0 && withheldAddress === null && sharedAddress === null) return [];
  const found = await sql<Found & { holds: boolean }>(tx)`
    SELECT u.id, u.email, u.name, u.active, u.email IS NOT DISTINCT FROM ${withheldAddress}::text AS holds
    FROM users u
    WHERE u.org_id = ${orgId} AND u.id <> ${id}
      AND (u.id = ANY (${tied}::uuid[]) OR u.email = ${withheldAddress}::text
           OR u.id IN (SELECT a.user_id FROM record_addresses a
                       WHERE a.org_id = ${orgId} AND a.address = ${sharedAddress}::text AND a.rank IS NOT NULL AND NOT a.parted))
    ORDER BY u.id LIMIT ${MOST_RELATED}`;
  return found.map(({ holds, ...user }) => ({
    ...user,
    relation: relationOf(user.id, {
      twinOf,
      twins,
      linkedTo,
      holds: holds && withheldAddress !== null,
    }),
  }));
}

function relationOf(
  id: string,
  {
    twinOf,
    twins,
    linkedTo,
    holds,
  }: {
    readonly twinOf: readonly string[];
    readonly twins: readonly string[];
    readonly linkedTo: readonly string[];
    readonly holds: boolean;
  },
): Relation {
  if (holds) return 'holder';
  if (twinOf.includes(id)) return 'twin_of';
  if (twins.includes(id)) return 'twin';
  return linkedTo.includes(id) ? 'linked' : 'shares_address';
}
