import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import { demandOf } from '#domain/access/issuance/refused-issuance.js';
import { NO_CONDITIONS } from '#domain/access/reach/decision.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CONDITION_PROMPT, ASSIGNMENT_PROMPT } from '../engine/library-patches.js';
import { epochSeconds } from '../protocol/claims.js';
import type { Interaction } from './login-prompt.js';

/** The data of the page for a user who does not reach an application. */
export interface RefusalPage {
  readonly client: { readonly name: string };
  readonly user: { readonly email: string };
  /**
   * The kind of touch that the application demands, in words; undefined for a user who is not
   * assigned.
   */
  readonly demand: string | undefined;
  /** The way back to the application; undefined for a device. */
  readonly back:
    { readonly uid: string; readonly host: string; readonly loginPage: string } | undefined;
}

/** Returns true for the interaction of a user who does not reach the application. */
export function isAboutReachOf({ prompt }: Interaction): boolean {
  return prompt.name === ASSIGNMENT_PROMPT || prompt.name === CONDITION_PROMPT;
}

/**
 * Returns in words the kind of touch that an application demands; undefined for a user who is not
 * assigned.
 */
export function demandOfDenial({ denial, conditions = NO_CONDITIONS }: Denied): string | undefined {
  return denial === 'condition_unmet' ? demandOf(conditions) : undefined;
}

/**
 * Returns true if a user has already touched a key for an authorization request. If that touch does
 * not meet the conditions, the page says which key does, because another login with the same key
 * would fail again.
 */
export function hasTouchedFor(
  { iat, lastSubmission }: Interaction,
  { authTime }: ResourceOwner,
): boolean {
  return lastSubmission?.login !== undefined || epochSeconds(authTime) >= (iat ?? Infinity);
}
