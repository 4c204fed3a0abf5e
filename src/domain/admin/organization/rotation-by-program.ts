import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { AuditLog } from '#domain/audit/audit.repository.js';
import { notedToken, type NotedSecret } from '#domain/audit/noted-act.js';
import {
  followScimToken,
  holdMaker,
  lockForRotation,
  type Program,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import {
  endScimTokenAfter,
  findTokenRotation,
  insertReplacement,
  mintScimToken,
  replacementAmong,
  replacementsOfExpired,
  revokeReplaced,
  type ScimToken,
} from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import type { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';

/** A request of a program (a client with an API token) to replace a SCIM token by a new one. */
export interface AskedRotation {
  readonly program: Program;
  /** The id of the SCIM token, as the request states it. */
  readonly id: string;
  /** The hours after which the old token ends; 0 ends it at once. */
  readonly overlapHours: number;
  readonly origin: AuditOrigin;
}

/** The new SCIM token with its secret, and the end of the old one. */
export interface RotatedByProgram {
  readonly scimToken: ScimToken;
  readonly secret: string;
  readonly oldEndsAt: Date;
}

interface Parts {
  readonly organizations: Pick<OrganizationsRepository, 'lockSettings'>;
  readonly audit: AuditLog;
}

/**
 * Replaces a SCIM token by a new one for a program. The API token of the program lists the SCIM
 * tokens that it may rotate. After the rotation, it lists the new token in place of the old one.
 * The new token ends no later than the API token, and is valid no longer than the old one was made
 * for. If the old token itself replaced a valid one, that oldest token ends, so that at most two
 * are valid.
 *
 * The locks have the order of an admin's acts: the maker of the API token, the organization, the
 * API token. So of several requests that rotate one SCIM token, one succeeds.
 *
 * @throws DomainError unauthenticated, not_found, token_rotated, rotation_pending
 */
export async function rotateByProgram(
  tx: EntityManager,
  { organizations, audit }: Parts,
  { program, id, overlapHours, origin }: AskedRotation,
): Promise<RotatedByProgram> {
  const { orgId, apiTokenId } = program;
  const mayRotate = await holdMaker(tx, apiTokenId);
  await organizations.lockSettings(tx, orgId);
  const held = mayRotate ? await lockForRotation(tx, program) : undefined;
  if (!held) throw new DomainError('unauthenticated', 'The API token has ended.');
  const scimTokenIds = await followExpired(tx, orgId, held.scimTokenIds);
  const oldId = await namedToken(tx, orgId, scimTokenIds, id);
  const { token: secret, hash } = mintScimToken();
  const { createdBy, expiresAt: notAfter, name } = held;
  const token = { orgId, hash, createdBy, replaces: oldId, notAfter };
  const scimToken = await insertReplacement(tx, token);
  if (!scimToken) throw await refusal(tx, orgId, oldId);
  const oldest = await endReplaced(tx, orgId, oldId);
  const oldEndsAt = await endScimTokenAfter(tx, oldId, overlapHours);
  await followScimToken(tx, orgId, oldId, scimToken.id);

  const by = { api_token_id: apiTokenId, api_token: name };
  const event = { actorId: null, subjectId: null, orgId, origin };
  const { description, expiresAt } = scimToken;
  await audit.record(tx, {
    ...event,
    type: 'scim_token_created',
    details: {
      scim_token_id: scimToken.id,
      description,
      expires_at: expiresAt.toISOString(),
      replaces: oldId,
      replaced_ends_at: oldEndsAt.toISOString(),
      ...by,
    },
    acts: [
      notedToken('secret_made', 'scim_token', orgId, { id: scimToken.id, name: description }),
      notedEnd(orgId, { id: oldId, description }, oldEndsAt),
    ],
  });
  const ended = overlapHours === 0 ? [...oldest, { id: oldId, description }] : oldest;
  for (const each of ended) {
    const details = { scim_token_id: each.id, ...by };
    const acts = [notedEnd(orgId, each)];
    await audit.record(tx, { ...event, type: 'scim_token_revoked', details, acts });
  }
  return { scimToken, secret, oldEndsAt };
}

/**
 * Returns the note that a SCIM token ended. With it, the service can end the token again if a
 * failover of the database loses the commit. Without `endsAt` the token ended at once.
 */
function notedEnd(
  orgId: string,
  { id, description: name }: Pick<ScimToken, 'id' | 'description'>,
  endsAt?: Date,
): NotedSecret {
  return notedToken('secret_ended', 'scim_token', orgId, { id, name }, endsAt);
}

/**
 * Ends the valid tokens that a SCIM token replaced, because at most two tokens of a chain of
 * replacements may be valid. API tokens that could rotate an ended token can then rotate the given
 * one.
 *
 * @returns the tokens that this call ended
 */
export async function endReplaced(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<{ readonly id: string; readonly description: string }[]> {
  const ended = await revokeReplaced(tx, orgId, id);
  for (const older of ended) await followScimToken(tx, orgId, older.id, id);
  return ended;
}

/**
 * Lets the API tokens that could rotate an expired SCIM token rotate its valid replacement, as if
 * an admin had revoked the expired one. An admin may have made the replacement by hand.
 *
 * @returns the SCIM tokens that the API token of the program may rotate now
 */
async function followExpired(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const found = await replacementsOfExpired(tx, orgId, ids);
  for (const { expired, present } of found) await followScimToken(tx, orgId, expired, present);
  const presents = new Map(found.map(({ expired, present }) => [expired, present]));
  return ids.map((id) => presents.get(id) ?? id);
}

/**
 * Returns the id of the SCIM token that a request names, if the API token may rotate that SCIM
 * token.
 *
 * @throws DomainError token_rotated, with the id of the present token, if the named token was
 *   rotated before; not_found for every other id
 */
async function namedToken(
  tx: EntityManager,
  orgId: string,
  scimTokenIds: readonly string[],
  text: string,
): Promise<string> {
  const id = text.toLowerCase();
  if (scimTokenIds.includes(id)) return id;
  const present = isUuid(id) ? await replacementAmong(tx, orgId, scimTokenIds, id) : undefined;
  if (present === undefined) throw noToken();
  throw new DomainError(
    'token_rotated',
    `This SCIM token was rotated before. The present one is ${present}: rotate that one if you lack its secret.`,
  );
}

async function refusal(tx: EntityManager, orgId: string, id: string): Promise<DomainError> {
  const found = await findTokenRotation(tx, orgId, id);
  if (!found || found.oldEndedAt !== null || found.replacement === null) return noToken();
  return new DomainError(
    'rotation_pending',
    'An admin replaces this SCIM token at the moment. Try again when the old token has ended.',
  );
}

function noToken(): DomainError {
  return new DomainError('not_found', 'The API token names no such valid SCIM token.');
}
