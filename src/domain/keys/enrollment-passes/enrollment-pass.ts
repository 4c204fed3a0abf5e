import {
  hashOpaqueToken,
  mintOpaqueToken,
  type OpaqueToken,
} from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The prefix of every re-enrollment pass, by which a secret scanner recognizes a leaked one. */
export const PASS_PREFIX = 'svc_pass_';

/** The hours for which a re-enrollment pass is valid. */
export const PASS_HOURS = 24;

/**
 * A re-enrollment pass that was just made: a one-time secret with which a user who lost the
 * security key enrolls another one. The secret is not stored, so only the admin and the user who
 * gets the pass know it.
 */
export interface GivenPass {
  readonly secret: string;
  readonly expiresAt: Date;
}

/**
 * The re-enrollment pass that the next enrollment of a user needs, without its secret. If the
 * secret has expired or was withdrawn, the row in the database stays, so that the user still needs
 * a pass.
 */
export interface DemandedPass {
  /**
   * The id of the admin who gave the pass. It is null if the operator of the service gave the pass,
   * or if the service demands a pass that was not given yet.
   */
  readonly createdBy: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /**
   * True if no secret is stored, so that no pass is accepted. An admin withdrew the pass, the
   * account was deactivated, its credentials were revoked, the database lost commits, or no pass
   * was given yet. The user needs another pass.
   */
  readonly isWithdrawn: boolean;
  /** True for a pass that has expired. The user needs another pass. */
  readonly isExpired: boolean;
}

/**
 * Makes a re-enrollment pass of 256 random bits. The stored hash covers the whole pass with its
 * prefix.
 */
export function mintPass(): OpaqueToken {
  const token = PASS_PREFIX + mintOpaqueToken().token;
  return { token, hash: hashOpaqueToken(token) };
}

/**
 * Returns the hash by which a pass is stored. It first removes blanks around the pass, which may
 * come from pasting.
 */
export function hashOfPass(presented: string): Buffer {
  return hashOpaqueToken(presented.trim());
}

/** The facts by which {@link decidePass} allows or refuses an enrollment. */
export interface PassFacts {
  /** True if the user can enroll a key only with a re-enrollment pass. */
  readonly isDemanded: boolean;
  /** True if the user sent a re-enrollment pass. */
  readonly isPresented: boolean;
  /** True if the pass that the user sent is the pass of this user and has not expired. */
  readonly fits: boolean;
}

/**
 * Refuses an enrollment without the right pass. The error is the same for a pass that is unknown,
 * used, expired, withdrawn, replaced, or of another user. The cause would help an attacker.
 *
 * @throws DomainError enrollment_pass_required, enrollment_pass_invalid
 */
export function decidePass({ isDemanded, isPresented, fits }: PassFacts): void {
  if (isPresented && !fits) throw passInvalid();
  if (isDemanded && !isPresented) {
    throw new DomainError(
      'enrollment_pass_required',
      'This account needs a re-enrollment pass. Enter the pass that your admin gave you, or ask for one.',
    );
  }
}

/** Returns the error for a re-enrollment pass that is not the valid pass of the user. */
export function passInvalid(): DomainError {
  return new DomainError(
    'enrollment_pass_invalid',
    'This pass is not valid for your account. Check that you pasted all of it, or ask your admin for a new one.',
  );
}
