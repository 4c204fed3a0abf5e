import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  AccessPolicy,
  type PresentedToken,
  type RememberedCaller,
  type VerifiedRequest,
} from '#platform/http/access/access-policy.js';
import { noteCaller, type AdmittedRequest } from '#platform/http/access/caller.js';
import { originCheck } from '#platform/http/access/origin-rule.js';
import { tokenFor } from '#platform/http/access/presented-token.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Unconfirmed } from '#platform/http/access/unconfirmed.js';
import { expectsContinue } from '#platform/http/body/expectation.js';
import { assertDeclaredSize, hasBodyFor, parseBody } from '#platform/http/body/request-body.js';
import { assertKnownQuery } from '#platform/http/request/known-query.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { allowedMethods } from '#platform/http/routing/allowed-methods.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { AuthRule, RoutePolicy } from '#platform/http/routing/route-policy.js';

/**
 * The request header in which our pages name the session for which they were rendered. A write from
 * a page of an earlier session is refused, because another user may have logged in since.
 */
const PAGE_SESSION = 'svc-session';

/** The largest body, in bytes, that is read before the limit of a request is decided. */
const SMALL = 16 * 1024;

/**
 * Applies the rules of a route to every request, after the rate limit. It checks the declared size
 * of the body, the origin of a write, the caller, the names of query parameters, and then the body
 * itself. After a refusal, nothing more is looked up and the body is not read. A route can leave
 * the limit and the caller undecided, see `AdmissionMoment`.
 *
 * The body is read in this guard and not in an interceptor, because with an interceptor, Nest would
 * wrap the handling of every request in RxJS observables.
 */
@Injectable()
export class RouteGuard implements CanActivate {
  readonly #assertOrigin: ReturnType<typeof originCheck>;

  constructor(
    @Inject(CONFIG) config: Pick<Config, 'http'>,
    private readonly routePolicies: RoutePolicies,
    private readonly accessPolicy: AccessPolicy,
    private readonly sessionCookies: SessionCookies,
  ) {
    this.#assertOrigin = originCheck(config.http);
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<AdmittedRequest>();
    const policy = this.routePolicies.ofContext(context);
    const { auth, body, head } = policy;
    if (request.method === 'HEAD' && !head)
      throw headRefused(request, http.getResponse<Response>());
    assertDeclaredSize(request, body);
    const hasCookie = () => this.sessionCookies.token(request) !== undefined;
    this.#assertOrigin(request, auth.origin, hasCookie);
    const response = http.getResponse<Response>();
    if (policy.admission === 'first' || !(await this.#recall(request, response, policy))) {
      await request.limit?.decide();
      if (auth.session !== 'none') await this.#admit(request, response, auth);
    }
    assertKnownQuery(request, policy);
    if (hasBodyFor(request, body)) await parseBody(request, response, body);
    return true;
  }

  /**
   * Lets a request pass before its limit and its caller are decided, if this process remembers the
   * caller. A body must be small and announced, so that it is read at once.
   *
   * @returns false if the guard must decide
   */
  async #recall(
    request: AdmittedRequest,
    response: Response,
    { auth, admission }: RoutePolicy,
  ): Promise<boolean> {
    if (!isSmall(request)) return false;
    if (auth.session === 'none') return this.#passBesideLimit(request);
    const presented = tokenFor(request, auth, this.sessionCookies);
    if (presented === undefined) return false;
    const caller = await this.accessPolicy.recall(
      presented,
      auth,
      verifiedRequest(presented, request),
    );
    if (!caller) return false;
    const find = async (): Promise<unknown> => {
      await request.limit?.decide();
      return this.#admit(request, response, auth, caller);
    };
    // The caller is not noted for the log before it is found, because it may have ended.
    const unconfirmed = new Unconfirmed(caller, request.limit, find, (session) => {
      noteCaller(request, this.accessPolicy.factsOf(caller.session));
      response.set(this.accessPolicy.headersFor(session));
    });
    request.unconfirmed = unconfirmed;
    request.session = caller.session;
    if (admission === 'beside') begin(unconfirmed);
    return true;
  }

  /** Lets a request of a route without a caller pass while its limit is decided. */
  #passBesideLimit(request: AdmittedRequest): boolean {
    const { limit } = request;
    if (!limit) return false;
    request.unconfirmed = new Unconfirmed(undefined, limit, () => limit.decide());
    begin(request.unconfirmed);
    return true;
  }

  /**
   * Looks up the session of a request once, and verifies that it meets the rule of the route.
   * Returns the session; undefined for a request without one.
   */
  async #admit(
    request: AdmittedRequest,
    response: Response,
    auth: AuthRule,
    remembered?: RememberedCaller,
  ): Promise<unknown> {
    const { begun } = request;
    const presented = tokenFor(request, auth, this.sessionCookies);
    const session = await this.accessPolicy.find(presented, auth, begun, remembered);
    if (session === undefined || presented === undefined) return undefined;
    // The caller is recorded before the rule is checked, so that the log also names a caller who is
    // refused.
    noteCaller(request, this.accessPolicy.factsOf(session));
    await this.accessPolicy.verify(session, auth, verifiedRequest(presented, request));
    request.session = session;
    response.set(this.accessPolicy.headersFor(session));
    return session;
  }
}

/**
 * Begins to decide about a request. The handler waits for the result. Node would end the process
 * for a rejection that has no handler, if the handler fails before it waits.
 */
function begin(unconfirmed: Unconfirmed): void {
  unconfirmed.confirm().catch(() => undefined);
}

/**
 * Returns true if a request has no body, or a body that is announced as small and that the client
 * has sent without waiting. Its body is then read although the limit may still refuse the request.
 */
function isSmall(request: AdmittedRequest): boolean {
  const { headers } = request;
  const isAnnounced = headers['transfer-encoding'] === undefined && !expectsContinue(request);
  return isAnnounced && Number(headers['content-length'] ?? 0) <= SMALL;
}

/** Returns the parts of a request by which its session is checked. */
function verifiedRequest(
  { scheme, method, path }: PresentedToken,
  request: AdmittedRequest,
): VerifiedRequest {
  const pageSession = request.get(PAGE_SESSION);
  return { scheme, method, path, pageSession, origin: () => originOf(request) };
}

/**
 * Makes the error for a HEAD request to a route that refuses it. Nest calls the handler of GET for
 * HEAD as well, so a link preview could use up a GET that works only once.
 */
function headRefused(request: AdmittedRequest, response: Response): DomainError {
  const methods = allowedMethods(request.app, request.path, false);
  response.setHeader('Allow', [...methods, 'OPTIONS'].join(', '));
  return new DomainError('method_not_allowed', `This URL allows only ${methods.join(', ')}.`);
}
