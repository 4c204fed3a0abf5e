import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  type ThrottlerModuleOptions,
} from './buckets/throttler.js';
import type { Request, Response } from 'express';
import { AccessPolicy } from '#platform/http/access/access-policy.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import type { DeferredLimit } from '#platform/http/access/unconfirmed.js';
import { tokenFor } from '#platform/http/access/presented-token.js';
import { hasAnonymousRow } from '#platform/http/access/anonymous-row.js';
import { responseErrorOf } from '#platform/http/errors/error-log.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { AuthRule, RoutePolicy, TierName } from '#platform/http/routing/route-policy.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Buckets, type Hit } from './buckets/buckets.js';
import { hitOf, holderOf } from './hit.js';
import { isFailedAttempt } from './failed-attempt.js';
import type { Decision } from '#platform/gcra/gcra.js';
import { noteLimit } from './limit-headers.js';
import { Networks } from './networks.js';

/**
 * Limits the requests of every route by its tier. A route with the tier `unlimited` has no limit.
 * The guard is the first of every route, so that a refused request changes nothing. Its body is not
 * read either, unless the limit is decided by the statement of the handler or beside it
 * (`AdmissionMoment`). A client is an IPv4 address, or an IPv6 /64, which one subscriber has.
 * Clients of one /48 share two more buckets: for failed attempts, and for rows that they insert
 * without a user or an authenticated client.
 *
 * Unlike `@nestjs/throttler`, which counts a request in every tier, it counts a request in the tier
 * of its route only.
 */
@Injectable()
export class TierGuard extends ThrottlerGuard {
  readonly #failures: Networks;
  readonly #rows: Networks;

  constructor(
    @InjectThrottlerOptions() options: ThrottlerModuleOptions,
    @InjectThrottlerStorage() private readonly buckets: Buckets,
    reflector: Reflector,
    private readonly routePolicies: RoutePolicies,
    private readonly sessionCookies: SessionCookies,
    private readonly accessPolicy: AccessPolicy,
  ) {
    super(options, buckets, reflector);
    this.#failures = new Networks(buckets, 'failures');
    this.#rows = new Networks(buckets, 'rows');
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.commonOptions.skipIf?.(context)) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<AdmittedRequest>();
    const policy = this.routePolicies.ofContext(context);
    const { tier } = policy;
    if (tier !== 'unlimited') await this.#hold(tier, policy, request, http.getResponse<Response>());
    return true;
  }

  /**
   * Counts a request in its tier, and refuses it if the limit of the client or of its network is
   * reached.
   * @throws DomainError rate_limited at such a limit
   */
  async #hold(
    tier: TierName,
    policy: RoutePolicy,
    request: AdmittedRequest,
    response: Response,
  ): Promise<void> {
    const address = clientAddressOf(request);
    const holder = () =>
      holderOf({
        credential: request.headers.authorization ?? this.sessionCookies.token(request),
        method: request.method,
        path: request.path,
        goesFirst: policy.goesFirst,
      });
    const whileAsked = () => this.#beginLookUp(request, policy.auth);
    const hit = { ...hitOf(tier, address, holder), whileAsked };
    const counts = address === undefined ? [] : this.#countsOf(policy, request, response);
    const refusal = () =>
      address === undefined ? undefined : this.#refusalOfNetwork(address, counts, hit);
    if (policy.admission !== 'first' && counts.length === 0) {
      request.limit = this.#deferred(tier, hit, response);
      if (request.limit) return;
    }
    const taken = refusal() ?? (await this.buckets.take(hit));
    // The limit of the network is checked again, because other requests of this network may have
    // begun meanwhile. No `await` may come between this check and `countOutcome`, which counts this
    // request.
    assertAllowed((taken.allowed ? refusal() : undefined) ?? taken, tier, response);
    if (address !== undefined) countOutcome(address, counts, response);
  }

  /**
   * Leaves the decision about a request to a statement of its handler, or to the route guard.
   *
   * @returns undefined if the decision must be taken now
   */
  #deferred(tier: TierName, hit: Hit, response: Response): DeferredLimit | undefined {
    const deferred = this.buckets.defer(hit);
    if (!deferred) return undefined;
    // A response that is sent before the decision, such as 408, also states the tier of its route.
    noteLimit(response, { tier, remaining: deferred.remaining });
    const decide = async (): Promise<void> => {
      deferred.end();
      assertAllowed(await this.buckets.take(hit), tier, response);
    };
    let decided: Promise<void> | undefined;
    let hasBegun = false;
    // A client that disconnects leaves its request without a decision. A statement that has begun
    // goes on, and another one of this bucket must not begin beside it.
    response.once('close', () => {
      if (!hasBegun) deferred.end();
    });
    return {
      begin: () => {
        hasBegun = deferred.begin();
        return hasBegun ? { key: hit.bucket, tier } : undefined;
      },
      noteAdmitted: (debt) => {
        if (decided) return;
        decided = Promise.resolve();
        noteLimit(response, { tier, remaining: deferred.admit(debt).remaining });
      },
      decide: () => (decided ??= decide()),
    };
  }

  /**
   * Begins to look up the caller of a request while the database decides about its limit. If the
   * request is then refused, the look-up was in vain. A flood of refused requests causes no
   * look-ups, because the database is not asked about cached denials.
   */
  #beginLookUp(request: AdmittedRequest, auth: AuthRule): void {
    if (auth.session === 'none') return;
    try {
      const presented = tokenFor(request, auth, this.sessionCookies);
      request.begun = presented && this.accessPolicy.begin(presented, auth);
    } catch {
      // The Authorization header has no usable token, so there is nothing to look up. The route
      // guard refuses the request if the limit admits it.
    }
  }

  /**
   * Returns the kinds of outcomes that are counted for the network of a request. Failed attempts
   * are counted if the route is in the Authentication tier, and anonymous rows if the route may
   * insert them.
   */
  #countsOf(
    { tier, failureStatus, anonymousRows }: RoutePolicy,
    request: Request,
    response: Response,
  ): Count[] {
    const hasFailed = () => {
      const { statusCode: status } = response;
      return isFailedAttempt({ status, error: responseErrorOf(response) }, failureStatus);
    };
    return [
      ...(tier === 'authentication' ? [{ networks: this.#failures, isCounted: hasFailed }] : []),
      ...(anonymousRows
        ? [{ networks: this.#rows, isCounted: () => hasAnonymousRow(request) }]
        : []),
    ];
  }

  /**
   * Returns the denial if the network of a request has reached one of its limits; undefined
   * otherwise. The wait in the denial is also long enough for the client's own bucket.
   */
  #refusalOfNetwork(address: string, counts: readonly Count[], hit: Hit): Decision | undefined {
    const wait = Math.max(0, ...counts.map(({ networks }) => networks.wait(address)));
    if (wait === 0) return undefined;
    const own = this.buckets.peek(hit);
    return { allowed: false, remaining: 0, retryAfter: Math.max(wait, own.retryAfter) };
  }
}

/**
 * A kind of outcomes that is counted for the network of a request, and the function that says
 * whether this request had such an outcome.
 */
interface Count {
  readonly networks: Networks;
  readonly isCounted: () => boolean;
}

/**
 * Counts a request provisionally. When the response has closed, its real outcome replaces the
 * provisional one.
 */
function countOutcome(address: string, counts: readonly Count[], response: Response): void {
  // A closed response has no further event `close`, so the provisional counts would never end.
  if (response.closed || counts.length === 0) return;
  const begun = counts.map(({ networks, isCounted }) => ({
    done: networks.begin(address),
    isCounted,
  }));
  response.once('close', () => {
    for (const { done, isCounted } of begun) done(isCounted());
  });
}

/**
 * States a decision in the headers of the response.
 *
 * @throws DomainError rate_limited if the decision refuses the request
 */
function assertAllowed(decision: Decision, tier: TierName, response: Response): void {
  noteLimit(response, { tier, remaining: decision.remaining });
  if (decision.allowed) return;
  const retryAfter = Math.ceil(decision.retryAfter / 1000);
  throw new DomainError(
    'rate_limited',
    `Too many requests from this address. Try again in ${retryAfter} s.`,
    { retryAfter },
  );
}
