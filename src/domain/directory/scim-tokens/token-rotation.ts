import type { TokenRotation } from './scim-tokens.repository.js';

/**
 * A step of a rotation. `make`: no valid token replaces the old one. `wait`: the identity provider
 * did not use the new token yet. `end`: it did. `done`: the old token has ended.
 */
export type RotationStep = 'make' | 'wait' | 'end' | 'done';

/** Returns the step of a rotation. It depends on the tokens alone. */
export function rotationStep({ oldEndedAt, replacement }: TokenRotation): RotationStep {
  if (replacement === null) return 'make';
  if (oldEndedAt !== null) return 'done';
  return replacement.lastUsedAt === null ? 'wait' : 'end';
}
