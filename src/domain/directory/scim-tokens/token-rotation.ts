/**
 * The facts that decide the next step when a token is replaced: the end of the old token, and the
 * use of the new one.
 */
interface RotationFacts {
  /** The time at which the old token ended; null while it is valid. */
  readonly oldEndedAt: Date | null;
  /** The new token, with the time of its last use; null if it was not created yet. */
  readonly replacement: { readonly lastUsedAt: Date | null } | null;
}

/**
 * The next step when a SCIM token or an API token is replaced. `make`: create the new token.
 * `wait`: the new token was not used yet. `end`: the new token is in use, so revoke the old one.
 * `done`: the old token has ended.
 */
export type RotationStep = 'make' | 'wait' | 'end' | 'done';

/**
 * Returns the next step when a token is replaced. No progress is stored, because the states of the
 * two tokens decide.
 */
export function rotationStep({ oldEndedAt, replacement }: RotationFacts): RotationStep {
  if (replacement === null) return 'make';
  if (oldEndedAt !== null) return 'done';
  return replacement.lastUsedAt === null ? 'wait' : 'end';
}
