import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import { demandOf } from '#domain/access/issuance/refused-issuance.js';
import { NO_CONDITIONS } from '#domain/access/reach/decision.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CONDITION_PROMPT, ASSIGNMENT_PROMPT } from '../engine/library-patches.js';
import { isTouchedSince, type Interaction } from './login-prompt.js';

/** The data of the page for a user whom an application does not admit. */
export interface RefusalPage {
  readonly client: { readonly name: string };
  readonly user: { readonly email: string };
  /**
   * The touch of a security key that the application demands, in words; undefined for a user who is
   * not assigned to the application.
   */
  readonly demand: string | undefined;
  /**
   * The way back to the application; undefined in the device flow (RFC 8628). There the user typed
   * a code on a page of this service, and no application sent the browser.
   */
  readonly back:
    { readonly uid: string; readonly host: string; readonly loginPage: string } | undefined;
}

/**
 * Returns true if an authorization request waits because the application does not admit its user.
 */
export function isAboutReachOf({ prompt }: Interaction): boolean {
  return prompt.name === ASSIGNMENT_PROMPT || prompt.name === CONDITION_PROMPT;
}

/**
 * Returns in words the touch of a security key that an application demands, such as one in the last
 * minute. Returns undefined for a user who is not assigned to the application.
 */
export function demandOfDenial({ denial, conditions = NO_CONDITIONS }: Denied): string | undefined {
  return denial === 'condition_unmet' ? demandOf(conditions) : undefined;
}

/**
 * Returns true if the user has already touched a key for an authorization request. The page then
 * says which key or login the application demands, because another login with the same key would
 * fail again.
 */
export function hasTouchedFor(interaction: Interaction, resourceOwner: ResourceOwner): boolean {
  return (
    interaction.lastSubmission?.login !== undefined || isTouchedSince(interaction, resourceOwner)
  );
}

/**
 * Returns the result of a request after the application admits its user. It keeps what the user did
 * before for the request, such as a consent, but nothing that another user did, whom the user has
 * replaced in the browser. The login is new only if the user touched the key for the request. The
 * OAuth library then checks neither `prompt=login` nor `max_age`.
 */
export function resultOfAdmission(
  interaction: Interaction,
  resourceOwner: ResourceOwner,
  login: NonNullable<Interaction['result']>,
): Interaction['result'] {
  const isOfUser = interaction.session?.accountId === resourceOwner.userId;
  return {
    ...(isOfUser && interaction.lastSubmission),
    ...(isTouchedSince(interaction, resourceOwner) && login),
  };
}
