import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError, type Challenge } from '#platform/errors/domain-error.js';
import { NO_CONDITIONS, type Conditions } from '../reach/decision.js';
import type { Denied } from './issuance.repository.js';
import type { Denial } from './issuance-statement.repository.js';

/** The session whose request for a credential was denied. */
export interface DeniedSession {
  /**
   * True for a session that a device code opened. Such a session can have no touch of a security
   * key, so that a challenge for a touch would be useless.
   */
  readonly isOfDevice: boolean;
  /**
   * The challenge (`WWW-Authenticate`) for the scheme of the token in the request. For a session of
   * a browser the scheme is `Bearer`.
   */
  readonly challenge: Challenge;
}

/**
 * The age, in seconds, that the challenge demands of a new touch if the condition that is not met
 * names no age itself.
 */
const SOON = 60;

type Refusal = readonly [ErrorCode, string];

const REFUSALS: Readonly<Record<Exclude<Denial, 'withheld' | 'condition_unmet'>, Refusal>> = {
  gone: ['unauthenticated', 'The session has ended. Log in again.'],
  account_inactive: ['account_inactive', 'This account is deactivated.'],
  domain_not_owned: [
    'issuance_refused',
    'The domain of your e-mail address is not one that your organization has proven to own.',
  ],
  not_assigned: [
    'not_assigned',
    'You are not assigned to this. Ask an admin of your organization.',
  ],
  role_required: [
    'invalid_request',
    'Name the role in `role_arn`: your organization gives tokens for named roles only.',
  ],
  too_many_principals: [
    'too_many_principals',
    'A certificate carries at most 256 principals, and yours would carry more. Name the host in `host`.',
  ],
  too_many: [
    'issuance_refused',
    'You have too many certificates on record. Old ones are forgotten with time: make fewer.',
  ],
  changed: ['unavailable', 'The rules of your organization are changing. Try again.'],
};

/**
 * Returns the error for a user who got no credential. If a condition of the target was not met, the
 * error is a challenge (RFC 9470 §3). The client then asks the user for a new touch of the security
 * key. A session of a device code gets `browser_required` instead.
 *
 * @param withheld the error for the denial `withheld`, which each kind of credential words itself
 */
export function refusedIssuance(
  { denial, conditions = NO_CONDITIONS }: Denied,
  withheld: Refusal,
  session: DeniedSession,
): DomainError {
  if (denial === 'condition_unmet') return unmetCondition(conditions, session);
  return new DomainError(...(denial === 'withheld' ? withheld : REFUSALS[denial]));
}

/**
 * Returns the error for a session whose touches of security keys do not meet the conditions of a
 * target. It is a challenge, or `browser_required` for a session that a device code opened.
 */
export function unmetCondition(
  conditions: Conditions,
  { isOfDevice, challenge }: DeniedSession,
): DomainError {
  const demand = demandOf(conditions);
  if (isOfDevice) {
    const detail = `A login by a device code cannot do this. Log in in a browser: this needs ${demand}.`;
    return new DomainError('browser_required', detail);
  }
  return new DomainError('insufficient_user_authentication', `This needs ${demand}.`, {
    challenge: { ...challenge, maxAge: conditions.touchWithinSeconds ?? SOON },
  });
}

/** Describes the touch that the conditions of a target demand, for an error text. */
export function demandOf({ touchWithinSeconds, models, userVerification }: Conditions): string {
  const key = models === null ? 'your security key' : 'a FIPS-certified security key';
  const proof = userVerification === null ? '' : ' with its PIN';
  const age = touchWithinSeconds === null ? '' : ` in the last ${inWords(touchWithinSeconds)}`;
  return `a touch of ${key}${proof}${age}`;
}

function inWords(seconds: number): string {
  if (seconds % 60 !== 0) return `${seconds} seconds`;
  return seconds === 60 ? 'minute' : `${seconds / 60} minutes`;
}
