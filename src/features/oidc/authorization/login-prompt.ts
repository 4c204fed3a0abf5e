import { decodeJwt } from 'jose';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { epochSeconds } from '../protocol/claims.js';
import type { Provider } from '../protocol/library.js';

/**
 * An interaction of the OAuth library: an authorization request that waits for its user to log in
 * or consent.
 */
export type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;

/**
 * A request for certain values of `acr`, the strength of the login, in the parameter `claims`
 * (OpenID Connect Core §5.5.1.1). It has one value, or a list of accepted values.
 */
interface AcrRequest {
  readonly value?: string;
  readonly values?: readonly (string | undefined)[];
}

/**
 * Returns true if the login of the user satisfies what a waiting authorization request asks for. If
 * the request demands a new login, the user must have touched the key after the request.
 *
 * For `svc-cli` this touch must also differ from the last touch before the request
 * (`touched_before`). The time of the request is in whole seconds, so an earlier touch in the same
 * second would otherwise count.
 */
export function isLoggedInFor(interaction: Interaction, resourceOwner: ResourceOwner): boolean {
  const { prompt } = interaction;
  if (prompt.name !== 'login') return true;
  const isFirst = prompt.reasons.length === 1 && prompt.reasons[0] === 'no_session';
  const { touched_before: before } = prompt.details as { touched_before?: number | null };
  const isNew = resourceOwner.authTime.getTime() !== before;
  return isFirst || (isTouchedSince(interaction, resourceOwner) && isNew);
}

/** Returns true if the user touched the key after an authorization request began to wait. */
export function isTouchedSince({ iat }: Interaction, { authTime }: ResourceOwner): boolean {
  return epochSeconds(authTime) >= (iat ?? Infinity);
}

/**
 * Returns the error for an authorization request that the user's login cannot satisfy; undefined if
 * it can. The request may name another user (OpenID Connect Core §3.1.2.2, §5.5.1). Or it may
 * demand an `acr` (a strength of the login) that the key does not give (§5.5.1.1).
 */
export function loginErrorOf(
  { prompt, params }: Interaction,
  { userId, acr: current }: ResourceOwner,
): Interaction['result'] {
  const hint = params['id_token_hint'];
  const { sub, acr } = prompt.details as { sub?: { value?: string }; acr?: AcrRequest };
  const named = [typeof hint === 'string' ? decodeJwt(hint).sub : undefined, sub?.value];
  if (named.some((subject) => subject !== undefined && subject !== userId)) {
    return { error: 'login_required', error_description: 'another user is logged in' };
  }
  const wanted = acr && (acr.values ?? [acr.value]);
  if (!wanted || wanted.includes(current ?? undefined)) return undefined;
  return {
    error: 'unmet_authentication_requirements',
    error_description: 'none of the requested ACRs could be obtained',
  };
}
