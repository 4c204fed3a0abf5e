import type { TokenRotation } from './scim-tokens.repository.js';

/**
 * The next step when a SCIM token is replaced. `make`: create the new token. `wait`: the identity
 * provider did not use the new token yet. `end`: the new token is in use, so revoke the old one.
 * `done`: the old token has ended.
 */
export type RotationStep = 'make' | 'wait' | 'end' | 'done';

/** Returns the next step when a SCIM token is replaced. It depends on the two tokens alone. */
export function rotationStep({ oldEndedAt, replacement }: TokenRotation): RotationStep {
  if (replacement === null) return 'make';
  if (oldEndedAt !== null) return 'done';
  return replacement.lastUsedAt === null ? 'wait' : 'end';
}
