import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import {
  recordRefusedAccess,
  type RefusedTarget,
} from '#domain/access/issuance/refused-access.repository.js';
import { unmetCondition } from '#domain/access/issuance/refused-issuance.js';
import { NO_CONDITIONS } from '#domain/access/reach/decision.js';
import { displayName } from '#domain/oauth/clients/display-name.js';
import { FIDO2_GRANT, TOKEN_EXCHANGE_GRANT } from '#domain/oauth/applications/grant-types.js';
import { isSessionOfDevice } from '#domain/sessions/own-session.repository.js';
import { challengeOf } from '#platform/http/errors/challenge.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { errors, type Client, type KoaContextWithOIDC } from '../protocol/library.js';
import { requestContextOf, requestOf } from './request-context.js';

/** The text of an OAuth error for a user who is not assigned to the client. */
export const NOT_ASSIGNED = 'the user is not assigned to this application';

/**
 * The text of an OAuth error for a user whose last touch of a security key does not meet the
 * conditions of the client. A condition can be the greatest age of the touch, for example.
 */
export const UNMET_CONDITION = 'the login does not meet the conditions of this application';

/** The error text for a user who has as many grants or recorded sign-ins as a user may have. */
export const TOO_MANY_GRANTS = 'the user has too many sign-ins to applications';

/** The error text for a cluster that is not registered, or that does not admit the user. */
const NO_SUCH_CLUSTER =
  'you are not assigned to a cluster of this resource; ask an admin of your organization';

/**
 * The error if a grant is not saved because the access rule of the client does not admit the user.
 * The authorization endpoint and `/device` catch it, and the user sees a page or an error of our
 * own.
 */
export class NotReached extends errors.AccessDenied {
  constructor(readonly denied: Denied) {
    super(NOT_ASSIGNED);
  }
}

/**
 * An OAuth request that is refused because its client, or the Kubernetes cluster that it names,
 * does not admit the user.
 */
export interface RefusedRequest extends Pick<KoaContextWithOIDC, 'req'> {
  readonly oidc: Pick<KoaContextWithOIDC['oidc'], 'client' | 'params'>;
}

/** The user who gets no token, and the session of the refused request. */
export interface DeniedUser {
  readonly userId: string;
  readonly sessionId: string;
}

/**
 * Records in the audit log that the client of a request, or the cluster of its token, does not
 * admit the user.
 */
export function recordRefusedReach(
  manager: EntityManager,
  ctx: RefusedRequest,
  userId: string,
  denied: Denied,
): Promise<void> {
  return recordRefusedAccess(manager, { userId }, targetOf(ctx), denied, originOf(requestOf(ctx)));
}

/** Describes an application that does not admit a user, for the audit log. */
export function refusedApplication(client: Pick<Client, 'clientId' | 'clientName'>): RefusedTarget {
  return { kind: 'application', name: displayName(client), id: client.clientId };
}

/**
 * Records that a user gets no token, and returns the error of the token endpoint.
 *
 * For a code the error is `invalid_grant`, so that the client starts again at `/oauth/authorize`.
 * In a token exchange it is `invalid_target` for a Kubernetes cluster, and otherwise
 * `invalid_request` (RFC 8693 §2.2.2). If a token exchange or the FIDO2 grant lacks only a suitable
 * touch of the key, the error is the challenge of RFC 9470, which asks for a new touch.
 */
export async function refusedToken(
  manager: EntityManager,
  ctx: KoaContextWithOIDC,
  { userId, sessionId }: DeniedUser,
  denied: Denied,
): Promise<Error> {
  await recordRefusedReach(manager, ctx, userId, denied);
  const grantType = ctx.oidc.params?.['grant_type'];
  const isExchange = grantType === TOKEN_EXCHANGE_GRANT;
  if (denied.denial === 'condition_unmet' && (isExchange || grantType === FIDO2_GRANT)) {
    const isOfDevice = await isSessionOfDevice(manager, sessionId);
    return touchNeeded(ctx, denied, isOfDevice);
  }
  if (!isExchange) return new errors.InvalidGrant(textOf(denied));
  return isForCluster(ctx) ? noSuchCluster() : new errors.InvalidRequest(textOf(denied));
}

/**
 * Makes the error for a cluster that is not registered, or that does not admit the user. The error
 * is the same in both cases, so that a user does not learn which clusters exist.
 */
export function noSuchCluster(): Error {
  return new errors.InvalidTarget(NO_SUCH_CLUSTER);
}

/**
 * Returns the text of an OAuth error for a user that the client does not admit. The text is for the
 * developer of the client.
 */
export function textOf({ denial }: Denied): string {
  return denial === 'not_assigned' ? NOT_ASSIGNED : UNMET_CONDITION;
}

/**
 * Returns the error that asks for another touch of the key (RFC 9470 §3), and sets its challenge in
 * the header `WWW-Authenticate`. For a session that a device code opened, in which no touch is
 * possible, the error is `access_denied`.
 */
function touchNeeded(
  ctx: KoaContextWithOIDC,
  { conditions = NO_CONDITIONS }: Denied,
  isOfDevice: boolean,
): Error {
  const scheme = ctx.get('DPoP') === '' ? 'Bearer' : 'DPoP';
  const error = unmetCondition(conditions, { isOfDevice, challenge: { scheme } });
  const { status, detail } = error;
  if (isOfDevice) return Object.assign(new errors.AccessDenied(detail), statusOf(status));
  ctx.set('WWW-Authenticate', challengeOf(error, undefined));
  const challenge = new errors.CustomOIDCProviderError(error.code, detail);
  return Object.assign(challenge, statusOf(status));
}

function statusOf(status: number) {
  return { status, statusCode: status };
}

function isForCluster(ctx: RefusedRequest): boolean {
  return requestContextOf(ctx).cluster !== undefined;
}

function targetOf(ctx: RefusedRequest): RefusedTarget {
  const { cluster } = requestContextOf(ctx);
  if (cluster) return { kind: 'application', name: cluster.resource, id: cluster.id };
  const { client } = ctx.oidc;
  if (!client) throw new Error('a request without a client was refused');
  return refusedApplication(client);
}
