import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { DomainError } from '#platform/errors/domain-error.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { SessionCookies } from './session-cookies.service.js';
import { AccessPolicy } from './access-policy.js';
import { Access, noteCaller, type AdmittedRequest } from './access.js';
import { OriginRule } from './origin-rule.service.js';
import { presentedToken } from './presented-token.js';

/**
 * Global: holds every route to its {@link Access}. The origin of a write is judged first, since it needs no look-up;
 * then the token, by the one live look-up of the request.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly policy: AccessPolicy,
    private readonly originRule: OriginRule,
    private readonly cookies: SessionCookies,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const requirement = this.reflector.getAllAndOverride(Access, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (!requirement) {
      throw new DomainError('internal', 'This route states no access rule.');
    }
    const request = context.switchToHttp().getRequest<AdmittedRequest>();
    this.originRule.check(request, requirement.origin);
    if (requirement.session === 'none') return true;
    const presented = presentedToken(request, this.cookies.token(request));
    const session = await this.policy.find(presented, requirement);
    if (session === undefined || presented === undefined) return true;
    // Before it is judged: the log names a caller who is refused, too.
    noteCaller(request, this.policy.factsOf(session));
    const { scheme, method, path } = presented;
    const asked = { scheme, method, path, origin: () => originOf(request) };
    await this.policy.judge(session, requirement, asked);
    request.session = session;
    return true;
  }
}
