import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { originOf } from '#platform/http/request/client-origin.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { SessionCookies } from './session-cookies.service.js';
import { AccessPolicy } from './access-policy.js';
import { noteCaller, type AdmittedRequest } from './access.js';
import { OriginRule } from './origin-rule.service.js';
import { presentedToken } from './presented-token.js';

/**
 * Global: holds every route to its auth rule. The origin of a write is judged first, since it needs no look-up;
 * then the token, by the one live look-up of the request.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly routes: RoutePolicies,
    private readonly policy: AccessPolicy,
    private readonly originRule: OriginRule,
    private readonly cookies: SessionCookies,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<AdmittedRequest>();
    const { auth: requirement } = this.routes.ofContext(context);
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
