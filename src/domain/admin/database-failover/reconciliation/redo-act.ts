import type { AccountAudit } from '#domain/directory/account.js';
import type { EndKind, RecordEnd } from '#domain/directory/record-ends.service.js';
import type { User } from '#domain/directory/users.repository.js';
import type { AuditEvent } from '#domain/audit/audit-event.js';
import type { NotedAct, NotedSecret } from '#domain/audit/noted-act.js';
import {
  endApiTokenAt,
  revokeApiToken,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import {
  endScimTokenAt,
  revokeScimToken,
} from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { deleteReceiver } from '#domain/oauth/event-receivers/receivers.repository.js';
import { withdrawReceiver } from '#domain/oauth/shared-signals/receivers.repository.js';
import { newUuid } from '#platform/clock/random.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { hasKeyLeft } from './lost-acts.repository.js';
import type { RedoParts } from './redo-parts.js';

/** The value of `revokedBy` in acts by which SCIM, and not an admin, ended access. */
const SCIM = 'scim';

type ActOf<Kind extends NotedAct['kind']> = Extract<NotedAct, { readonly kind: Kind }>;

/** An act that the database server has lost, and that is repeated. */
interface LostAct<Act extends NotedAct = NotedAct> {
  readonly act: Act;
  /** The id of the audit row that the server lost. */
  readonly auditId: string;
}

/**
 * Repeats an act that the database server has lost, and writes a new audit row without an actor. If
 * the server already has the effect of the act, nothing happens.
 *
 * @returns true if something changed
 */
export async function redoAct(
  tx: EntityManager,
  parts: RedoParts,
  { act, auditId }: LostAct,
): Promise<boolean> {
  switch (act.kind) {
    case 'user_removed':
    case 'user_deactivated':
      return endUser(tx, parts, { act, auditId });
    case 'credentials_revoked':
      return revokeCredentials(tx, parts, { act, auditId });
    case 'key_removed':
      return removeKey(tx, parts, { act, auditId });
    case 'admin_demoted':
      return demote(tx, parts, { act, auditId });
    case 'application_removed':
      return removeApplication(tx, parts, { act, auditId });
    case 'signals_withdrawn':
      return withdrawSignals(tx, parts, { act, auditId });
    case 'receiver_removed':
      return removeReceiver(tx, parts, { act, auditId });
    case 'secret_ended':
      return endSecret(tx, parts, { act, auditId });
    case 'user_activated':
    case 'secret_made':
      break; // These acts gave access. If they are lost, there is no access to end.
  }
  return false;
}

/**
 * Ends a user again. Linked records end with the user. If the user is a SCIM record, members who
 * signed in with an e-mail address of this record (twins) end, too. The locks have the same order
 * as in the lost act: the directory of the organization, then users by id.
 */
async function endUser(
  tx: EntityManager,
  { organizations, users, ends }: RedoParts,
  { act, auditId }: LostAct<ActOf<'user_removed' | 'user_deactivated'>>,
): Promise<boolean> {
  const { userId, orgId, reason, revokedBy } = act;
  if (orgId === null) return false;
  const kind: EndKind = act.kind === 'user_removed' ? 'remove' : 'deactivate';
  await organizations.lockDirectory(tx, orgId);
  const reached = await ends.reach(tx, userId, kind);
  const ids = reached.map(({ id }) => id);
  await users.lockMembers(tx, orgId, ids);
  const user = await users.lock(tx, userId);
  if (!user || (kind === 'deactivate' && !user.active)) return false;
  const end: RecordEnd = {
    reason: { remove: reason, deactivate: reason },
    revokedBy,
    byAdmin: revokedBy !== SCIM,
    auditOf: (ended, how, more) => auditOfEnd(ended, how, revokedBy, auditId, more),
  };
  await ends.end(tx, reached, end);
  return true;
}

function auditOfEnd(
  { id, email }: User,
  kind: EndKind,
  revokedBy: string,
  auditId: string,
  more: Readonly<Record<string, unknown>>,
): AccountAudit {
  const details = { email, ...lostDetails(auditId, revokedBy), ...more };
  if (revokedBy !== SCIM) {
    const type = kind === 'remove' ? 'admin_remove_user' : 'admin_deactivate';
    return { type, ...noActor(), details };
  }
  const operation = kind === 'remove' ? 'delete' : 'update';
  const about = { operation, resource_type: 'User', resource_id: id };
  return { type: 'scim_operation', ...noActor(), details: { ...about, ...details } };
}

async function revokeCredentials(
  tx: EntityManager,
  { users, directory, passes }: RedoParts,
  { act, auditId }: LostAct<ActOf<'credentials_revoked'>>,
): Promise<boolean> {
  const { userId, reason, revokedBy, demandsPass } = act;
  const user = await users.lock(tx, userId);
  if (!user) return false;
  const details = { email: user.email, ...lostDetails(auditId, revokedBy) };
  const audit = { type: 'admin_revoke_credentials', ...noActor(), details } as const;
  await directory.revokeCredentials(tx, user, { reason, revokedBy, audit });
  // The re-enrollment pass that the server lost cannot be made again, because only its hash was
  // stored. An admin must give another one.
  if (demandsPass) await passes.demand(tx, userId);
  return true;
}

async function removeKey(
  tx: EntityManager,
  { users, keys, accessRevocation, passes, audit }: RedoParts,
  { act, auditId }: LostAct<ActOf<'key_removed'>>,
): Promise<boolean> {
  const { userId, keyId, reason, revokedBy } = act;
  const user = await users.lock(tx, userId);
  const key = user && (await keys.find(tx, userId, keyId));
  if (!key) return false;
  const counts = await accessRevocation.endOfKey(tx, user, keyId, { reason, revokedBy });
  // The server may also have lost the registration of another key of the user. The user then has no
  // key, and an upstream login alone must not be enough to enroll one.
  const isLast = !(await hasKeyLeft(tx, userId));
  if (isLast) await passes.demand(tx, userId);
  const details = {
    key_id: keyId,
    name: key.name,
    aaguid: key.aaguid,
    ...counts,
    ...(isLast && { enrollment_pass_demanded: true }),
    ...lostDetails(auditId, revokedBy),
  };
  const about = { subjectId: userId, orgId: user.orgId };
  await audit.record(tx, { type: 'key_removed', ...noActor(), ...about, details });
  return true;
}

/**
 * Takes the role of admin from a user again, because the server lost the commit that took it. The
 * user stays an admin if the organization would have no admin otherwise.
 */
async function demote(
  tx: EntityManager,
  { users, directory, organizations, audit }: RedoParts,
  { act, auditId }: LostAct<ActOf<'admin_demoted'>>,
): Promise<boolean> {
  const { userId, orgId } = act;
  const user = await users.lock(tx, userId);
  if (!user || !(await organizations.hasOtherAdmin(tx, orgId, userId))) return false;
  const cause = { reason: 'demoted by an admin', revokedBy: 'reconciliation' };
  const ended = await directory.demote(tx, { id: userId, orgId }, cause);
  if (!ended) return false;
  const details = { email: user.email, ...ended, ...lostDetails(auditId) };
  const about = { subjectId: userId, orgId };
  await audit.record(tx, { type: 'admin_demote', ...noActor(), ...about, details });
  return true;
}

async function removeApplication(
  tx: EntityManager,
  { clients, audit }: RedoParts,
  { act, auditId }: LostAct<ActOf<'application_removed'>>,
): Promise<boolean> {
  const { clientId, orgId, name } = act;
  if (!(await clients.remove(tx, clientId))) return false;
  const details = { client_id: clientId, name, ...lostDetails(auditId) };
  const about = { subjectId: null, orgId };
  await audit.record(tx, { type: 'oauth_client_deleted', ...noActor(), ...about, details });
  return true;
}

/**
 * Ends the permission of an application to receive signals (security events of OpenID Shared
 * Signals), with its stream and its tokens.
 */
async function withdrawSignals(
  tx: EntityManager,
  { audit }: RedoParts,
  { act, auditId }: LostAct<ActOf<'signals_withdrawn'>>,
): Promise<boolean> {
  const { clientId, orgId, resource } = act;
  if (!(await withdrawReceiver(tx, clientId, resource))) return false;
  const change = { changed: ['signals'], signals: null };
  const details = { client_id: clientId, ...change, ...lostDetails(auditId) };
  const about = { subjectId: null, orgId };
  await audit.record(tx, { type: 'oauth_client_updated', ...noActor(), ...about, details });
  return true;
}

/** Removes an event receiver again, so that the audit log does not go to it any more. */
async function removeReceiver(
  tx: EntityManager,
  { audit }: RedoParts,
  { act, auditId }: LostAct<ActOf<'receiver_removed'>>,
): Promise<boolean> {
  const { receiverId, orgId, name } = act;
  if (!(await deleteReceiver(tx, orgId, receiverId))) return false;
  const details = { receiver_id: receiverId, name, ...lostDetails(auditId) };
  const about = { subjectId: null, orgId };
  await audit.record(tx, { type: 'event_receiver_deleted', ...noActor(), ...about, details });
  return true;
}

/**
 * Ends a secret again, such as a SCIM token, that is valid on the server because the server lost
 * the commit that ended it. If the secret was to stay valid until a later time, that time becomes
 * its expiry again.
 */
async function endSecret(
  tx: EntityManager,
  { clients, audit }: RedoParts,
  { act, auditId }: LostAct<NotedSecret>,
): Promise<boolean> {
  const { secret, secretId, orgId, clientId, endsAt } = act;
  const about = { ...noActor(), subjectId: null, orgId };
  const end = endsAt && { expires_at: endsAt.toISOString() };
  const more = { ...end, ...lostDetails(auditId) };
  if (secret === 'api_token') {
    if (orgId === null) return false;
    const isEnded = endsAt
      ? await endApiTokenAt(tx, orgId, secretId, endsAt)
      : await revokeApiToken(tx, orgId, secretId);
    if (!isEnded) return false;
    const details = { api_token_id: secretId, ...more };
    await audit.record(tx, { type: 'api_token_revoked', ...about, details });
    return true;
  }
  if (secret === 'scim_token') {
    if (orgId === null) return false;
    const isEnded = endsAt
      ? await endScimTokenAt(tx, orgId, secretId, endsAt)
      : await revokeScimToken(tx, orgId, secretId);
    if (!isEnded) return false;
    const details = { scim_token_id: secretId, ...more };
    await audit.record(tx, { type: 'scim_token_revoked', ...about, details });
    return true;
  }
  if (clientId === undefined) return false;
  const isEnded = endsAt
    ? await clients.endSecretAt(tx, clientId, secretId, endsAt)
    : await clients.removeSecret(tx, clientId, secretId);
  if (!isEnded) return false;
  const details = { client_id: clientId, secret_id: secretId, ...more };
  await audit.record(tx, { type: 'oauth_secret_revoked', ...about, details });
  return true;
}

/**
 * Returns the origin of an event that no request and no actor caused. Its request id is new,
 * because every event needs one.
 */
function noActor(): Pick<AuditEvent, 'actorId' | 'origin'> {
  return { actorId: null, origin: { requestId: newUuid(), ip: undefined, userAgent: undefined } };
}

/** Returns the details by which the audit log shows that the act repeats a lost one. */
function lostDetails(auditId: string, revokedBy?: string) {
  const first = revokedBy === undefined ? {} : { first_revoked_by: revokedBy };
  return { by: 'reconciliation', database_lost: auditId, ...first };
}
