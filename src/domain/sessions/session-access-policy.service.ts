import { Injectable } from '@nestjs/common';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  AccessPolicy,
  type AccessRequirement,
  type PresentedToken,
} from '#platform/http/access/access-policy.js';
import type { LiveSession } from './session.js';
import { Sessions } from './sessions.service.js';

/** Who may come in, by the live session row of the presented token. */
@Injectable()
export class SessionAccessPolicy extends AccessPolicy<LiveSession> {
  constructor(private readonly sessions: Sessions) {
    super();
  }

  override async admit(
    presented: PresentedToken | undefined,
    requirement: AccessRequirement['session'],
  ): Promise<LiveSession | undefined> {
    // No token is bound to a DPoP key yet, and an unbound one under that scheme is refused (RFC 9449 §7.1).
    const usable = presented && presented.scheme !== 'DPoP' ? presented : undefined;
    const session = usable && (await this.sessions.find(usable.token));
    if (session === undefined) {
      // A stale cookie is as good as none; a token in a header was meant, and is answered.
      const isMeant = presented !== undefined && presented.scheme !== 'cookie';
      if (requirement === 'optional' && !isMeant) return undefined;
      throw new DomainError(
        'unauthenticated',
        presented ? 'The access token is invalid or has expired.' : 'Sign in first.',
      );
    }
    if (requirement === 'verified' && session.level !== 'verified') {
      throw new DomainError('hardware_required', 'Log in with your security key first.');
    }
    return session;
  }
}
