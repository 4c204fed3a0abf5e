import { Injectable } from '@nestjs/common';
import { SessionCookies } from './session-cookies.service.js';
import { AccessPolicy, type Visitor } from './access-policy.js';
import type { AdmittedRequest } from './access.js';
import { presentedToken } from './presented-token.js';

/** Tells whose browser asks for a page, for the header of the pages that are about no session: those of errors. */
@Injectable()
export class PageVisitors {
  constructor(
    private readonly policy: AccessPolicy,
    private readonly cookies: SessionCookies,
  ) {}

  /** @returns undefined where there is no session, or where it cannot be looked up */
  async of(request: AdmittedRequest): Promise<Visitor | undefined> {
    try {
      const session =
        request.session ??
        (await this.policy.find(presentedToken(request, this.cookies.token(request)), {
          session: 'optional',
          origin: 'any',
        }));
      return session === undefined ? undefined : this.policy.visitorOf(session);
    } catch {
      return undefined;
    }
  }
}
