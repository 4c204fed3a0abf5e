import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CLI_CLIENT_ID } from '#domain/sessions/access-token.js';
import { accountClaims, epochSeconds, idTokenClaims } from '../protocol/claims.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import {
  coversRequest,
  isCovered,
  isKnownUri,
  needsApproval,
  needsConsent,
  needsConsentForResources,
} from '../protocol/consent-rules.js';
import { newGrant } from '../protocol/grant-id.js';
import {
  errors,
  type Account,
  type Client,
  type Grant,
  type KoaContextWithOIDC,
} from '../protocol/library.js';
import { requestedAccess } from '../protocol/requested-scopes.js';
import { grantedScopes, isOwnScope } from '../protocol/scopes.js';
import { NotReached } from '../request/refused-reach.js';
import { requestContextOf } from '../request/request-context.js';
import type { ResourceOwners } from '../request/resource-owners.service.js';
import { removeAccount, type LibrarySession } from './library-patches.js';

/**
 * Updates the OAuth library's session of a browser from the session of this service, because only
 * the session of this service decides who the user is. Pushed requests and the requests of devices
 * have no session to update.
 */
export async function updateSession(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
): Promise<void> {
  const { session } = ctx.oidc;
  if (!session) return;
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  if (session.accountId !== resourceOwner?.userId) removeAccount(session);
  if (resourceOwner) stateLogin(session, resourceOwner);
}

/**
 * Writes the login of a user into the OAuth library's session, from which the library takes `acr`,
 * `amr` and `auth_time` of the ID token.
 */
function stateLogin(session: LibrarySession, resourceOwner: ResourceOwner): void {
  if (!isSameLogin(session, resourceOwner)) session.loginAccount(loginOf(resourceOwner));
}

/**
 * Finds the account of a subject, which is a user id, for the OAuth library. It is found by the
 * grant of a code or token, or by the browser's session.
 *
 * @returns undefined for a code or token if its user may get no more tokens
 * @throws LoginRequired if the browser's session has ended, or belongs to another user
 */
export async function findAccount(
  ctx: KoaContextWithOIDC,
  subject: string,
  source: object | undefined,
  resourceOwners: ResourceOwners,
): Promise<Account | undefined> {
  const grantId = source && 'grantId' in source ? source.grantId : undefined;
  if (typeof grantId === 'string') {
    const resourceOwner = await resourceOwners.ofGrant(ctx, grantId);
    return resourceOwner?.userId === subject ? account(resourceOwner, resourceOwners) : undefined;
  }
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  if (resourceOwner?.userId !== subject) throw new errors.LoginRequired('the session has ended');
  return account(resourceOwner, resourceOwners);
}

/**
 * Creates the grant of an authorization request. It has the access that the request asks for,
 * without the scopes of this service that the user may not get. Each authorization has its own
 * grant, so that revoking the grant of a stolen code ends no other token.
 *
 * @param asksForLogin resolves to true if the OAuth library will show the login page
 * @returns undefined if the user must first log in, consent or touch the key, or if the client
 *   does not admit the user
 * @throws InvalidRedirectUri if the client has meanwhile lost the redirect URI of the request
 */
export async function createGrant(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
  asksForLogin: (ctx: KoaContextWithOIDC) => Promise<boolean>,
): Promise<Grant | undefined> {
  const { client, provider, session } = ctx.oidc;
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  if (!client || !resourceOwner) return undefined;
  // While the request waited, the user may have logged out and in again with a weaker key. The
  // library does not call `updateSession` when the request is resumed.
  if (session) stateLogin(session, resourceOwner);
  if (await asksForLogin(ctx)) return undefined;
  assertRedirectUri(ctx, client);
  const requested = requestedAccess(ctx);
  if (await asksForConsent(ctx, resourceOwners, client, resourceOwner)) {
    return expectDenial(ctx, resourceOwners, client, resourceOwner);
  }
  const grant = newGrant(provider, resourceOwner, client.clientId);
  const granted = grantedScopes(requested.scopes, client, resourceOwner);
  // The scopes that the user may not get are rejected explicitly. The OAuth library asks the user
  // for consent to a scope that is neither granted nor rejected.
  const rejected = requested.scopes.filter(
    (scope) => isOwnScope(scope) && !granted.includes(scope),
  );
  const allowed = requested.scopes.filter((scope) => !rejected.includes(scope));
  if (allowed.length > 0) grant.addOIDCScope(allowed.join(' '));
  if (rejected.length > 0) grant.rejectOIDCScope(rejected.join(' '));
  if (requested.claims.length > 0) grant.addOIDCClaims([...requested.claims]);
  for (const [resource, scopes] of requested.resources) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return (await isSaved(ctx, grant)) ? grant : undefined;
}

/**
 * Checks that the redirect URI of a request is still registered. The OAuth library checks it before
 * the user logs in, and not again afterwards. Meanwhile the owner of the application may have
 * removed it.
 *
 * @throws InvalidRedirectUri if the redirect URI is no longer registered
 */
function assertRedirectUri({ oidc: { params } }: KoaContextWithOIDC, client: Client): void {
  const redirectUri = params?.['redirect_uri'];
  if (typeof redirectUri === 'string' && client.redirectUriAllowed(redirectUri)) return;
  throw new errors.InvalidRedirectUri();
}

/**
 * Returns true if the user must consent before a request gets a grant, for one of these reasons.
 * The client asked for consent. The client needs consent, and the user has not given it in this
 * session for all of the access and for the redirect URI. Another program may impersonate the
 * native client. The user does not know the application.
 */
async function asksForConsent(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
  client: Client & OwnMetadata,
  resourceOwner: ResourceOwner,
): Promise<boolean> {
  const { oidc } = ctx;
  if (oidc.promptPending('consent')) return true;
  if (oidc.result?.consent !== undefined) return false;
  const requested = requestedAccess(ctx);
  const isNeeded =
    needsConsent(client, resourceOwner) ||
    needsConsentForResources(client, resourceOwner, requested);
  if (isNeeded) {
    const earlier = await resourceOwners.listGrants(resourceOwner.sessionId, client.clientId);
    const redirectUri = oidc.params?.['redirect_uri'] as string | undefined;
    if (!isCovered(requested, earlier) || !isKnownUri(client, earlier, redirectUri)) return true;
  }
  return client.applicationType === 'native'
    ? needsNativeConsent(ctx, resourceOwners)
    : isUnknownToUser(ctx, resourceOwners, client, resourceOwner);
}

/**
 * Looks up the reason why a client would not admit the user, and stores it in the request context.
 * A prompt of the OAuth library (a reason to show a page) then shows the refusal. So no user has to
 * consent to an application that does not admit the user.
 */
async function expectDenial(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
  client: Client,
  resourceOwner: ResourceOwner,
): Promise<undefined> {
  const denied = await resourceOwners.expectedDenial(resourceOwner, client.clientId);
  requestContextOf(ctx).refusedReach = denied;
}

/**
 * Saves a grant and returns true. If the client does not admit the user, it stores the reason in
 * the request context and returns false.
 */
async function isSaved(ctx: KoaContextWithOIDC, grant: Grant): Promise<boolean> {
  try {
    await grant.save();
    return true;
  } catch (error) {
    if (!(error instanceof NotReached)) throw error;
    requestContextOf(ctx).refusedReach = error.denied;
    return false;
  }
}

/**
 * Returns true if the client does not admit the user of an authorization request for the given
 * reason. It then records the refusal in the audit log. The OAuth library calls it after the login,
 * once for each reason, so that a refusal is recorded once.
 */
export async function isDenied(
  ctx: KoaContextWithOIDC,
  reason: Denied['denial'],
  resourceOwners: ResourceOwners,
): Promise<boolean> {
  const { refusedReach: denied } = requestContextOf(ctx);
  if (denied?.denial !== reason) return false;
  const userId = ctx.oidc.account?.accountId ?? '';
  await resourceOwners.recordRefusedReach(ctx, userId, denied);
  return true;
}

/**
 * Returns true if a native client needs consent in this authorization, because another program may
 * impersonate it (RFC 8252 §8.6). No consent is needed for an application that the user registered,
 * that an admin approved, or to which the user consented.
 */
export async function needsNativeConsent(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
): Promise<boolean> {
  const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
  if (client?.applicationType !== 'native' || ctx.oidc.result?.consent !== undefined) return false;
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  const isKnown =
    client.svc_kind !== 'dynamic' &&
    resourceOwner &&
    !needsConsent(client, resourceOwner) &&
    !(await isUnknownToUser(ctx, resourceOwners, client, resourceOwner));
  return !isKnown;
}

/**
 * Returns true if the user may not know the application that sends a request. It belongs to the
 * user's organization, but no admin has approved it for its redirect URI, and the user has not
 * consented to it.
 */
async function isUnknownToUser(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
  client: Client & OwnMetadata,
  resourceOwner: ResourceOwner,
): Promise<boolean> {
  const redirectUri = ctx.oidc.params?.['redirect_uri'] as string | undefined;
  if (ctx.oidc.result?.consent !== undefined || needsConsent(client, resourceOwner)) return false;
  if (!needsApproval(client, resourceOwner, redirectUri)) return false;
  const consent = await resourceOwners.consentOf(ctx, resourceOwner, client.clientId);
  return !consent || !coversRequest(client, consent, requestedAccess(ctx), redirectUri);
}

/**
 * Returns true if the user must still touch the security key for an authorization request of
 * `svc-cli`, on the login page that this request opened. The existing session of the browser is not
 * enough. The code of the request opens a new session, and is sent to a local port on which another
 * program may listen (RFC 8252 §8.6).
 */
export async function needsTouch(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
): Promise<boolean> {
  const { client, result } = ctx.oidc;
  if (client?.clientId !== CLI_CLIENT_ID) return false;
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  if (!resourceOwner || !result?.login) return true;
  const { accountId, ts } = result.login;
  return accountId !== resourceOwner.userId || ts !== epochSeconds(resourceOwner.authTime);
}

/**
 * Returns the time of the last touch of the key in the browser, in milliseconds since 1970; null
 * without a login. It is stored with the authorization request, so that only a later touch counts
 * for `svc-cli`.
 */
export async function touchBefore(
  ctx: KoaContextWithOIDC,
  resourceOwners: ResourceOwners,
): Promise<{ readonly touched_before: number | null }> {
  const resourceOwner = await resourceOwners.ofBrowser(ctx);
  return { touched_before: resourceOwner?.authTime.getTime() ?? null };
}

/**
 * Returns the login of a user in the form in which the OAuth library records it. The login time is
 * that of the last touch of the key.
 */
export function loginOf(resourceOwner: ResourceOwner) {
  return {
    accountId: resourceOwner.userId,
    loginTs: epochSeconds(resourceOwner.authTime),
    amr: [...resourceOwner.amr],
    ...(resourceOwner.acr === null ? {} : { acr: resourceOwner.acr }),
  };
}

function account(resourceOwner: ResourceOwner, resourceOwners: ResourceOwners): Account {
  return {
    accountId: resourceOwner.userId,
    claims: async (use, scope, claims) => {
      const profile = await resourceOwners.profileOf(resourceOwner, scope, claims);
      const claimsOf = use === 'id_token' ? idTokenClaims : accountClaims;
      return claimsOf(resourceOwner, profile);
    },
  };
}

function isSameLogin(session: LibrarySession, resourceOwner: ResourceOwner): boolean {
  return (
    session.accountId === resourceOwner.userId &&
    session.loginTs === epochSeconds(resourceOwner.authTime) &&
    session.acr === (resourceOwner.acr ?? undefined) &&
    session.amr?.join() === resourceOwner.amr.join()
  );
}
