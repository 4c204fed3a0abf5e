import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import {
  ADDRESS_OF_SEVERAL,
  DEACTIVATED,
  NO_ADDRESS,
  REMOVED_BY_SCIM,
} from '#domain/organizations/membership.js';
import { forbidsBinding } from '#domain/organizations/tombstones.repository.js';
import { RANK } from './record-addresses.js';
import { bindsByMail, recordsOf } from './record-ties.repository.js';
import type { UsersRepository, User } from './users.repository.js';

/**
 * The result of the search for a user by the e-mail address of a sign-in. The identity (an account
 * at an identity provider) of the sign-in is bound to no user yet. `refusal` is the reason why the
 * sign-in is refused. Both `user` and `refusal` are missing for an unknown address.
 */
export interface FoundRecord {
  readonly user?: User;
  readonly refusal?: string;
  /** The ids of the SCIM records that have the e-mail address, if several have it. */
  readonly records?: readonly string[];
  /** True if the record was found by one of its e-mails, and its userName is another address. */
  readonly isByMail?: boolean;
}

/**
 * Finds the user for a sign-in with an identity that is bound to no user yet. The e-mail address
 * that the identity provider states decides. The organization owns the domain of the address. The
 * caller has locked the directory of the organization by `lockDirectory`.
 *
 * The first match counts. First comes the SCIM record with the address as its userName. Next is the
 * member who signed in with the address before. Last is the record with the address as its primary
 * or only `work` e-mail. A linked record is ignored while another user signs in with its address.
 * If several records have the address, no user can sign in with it.
 */
export async function findRecordOfSignIn(
  users: UsersRepository,
  tx: EntityManager,
  orgId: string,
  identity: UpstreamIdentity,
): Promise<FoundRecord> {
  const known = await recordsOf(tx, orgId, identity.email);
  const records = known.filter(({ isPassedOver }) => !isPassedOver);
  const named = records.find(({ rank }) => rank === RANK.userName);
  if (named) return enter(users, tx, orgId, identity, named.id, false);
  const member = await users.lockByEmail(tx, orgId, identity.email);
  if (member && !member.scimManaged) {
    if (!member.active) return { user: member, refusal: DEACTIVATED };
    const isBarred = await forbidsBinding(tx, orgId, identity, member.id);
    return isBarred ? { user: member, refusal: REMOVED_BY_SCIM } : { user: member };
  }
  const [only] = records;
  if (!only) return {};
  if (records.length > 1) {
    return { refusal: ADDRESS_OF_SEVERAL, records: records.map(({ id }) => id) };
  }
  if (!bindsByMail(only.rank)) return {};
  return enter(users, tx, orgId, identity, only.id, true);
}

async function enter(
  users: UsersRepository,
  tx: EntityManager,
  orgId: string,
  identity: UpstreamIdentity,
  id: string,
  isByMail: boolean,
): Promise<FoundRecord> {
  const user = await users.lock(tx, id);
  if (!user) return {};
  if (!user.active) return { user, refusal: DEACTIVATED };
  if (await forbidsBinding(tx, orgId, identity, id)) {
    return { user, refusal: REMOVED_BY_SCIM };
  }
  return user.email === null ? { user, refusal: NO_ADDRESS } : { user, isByMail };
}
