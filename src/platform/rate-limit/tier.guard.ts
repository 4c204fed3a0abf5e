import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  type ThrottlerModuleOptions,
} from './buckets/throttler.js';
import type { Request, Response } from 'express';
import { hasAnonymousRow } from '#platform/http/access/anonymous-row.js';
import { responseErrorOf } from '#platform/http/errors/error-log.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { RoutePolicy, TierName } from '#platform/http/routing/route-policy.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Buckets, type Hit } from './buckets/buckets.js';
import { hitOf, holderOf } from './hit.js';
import { isFailedAttempt } from './failed-attempt.js';
import type { Decision } from '#platform/gcra/gcra.js';
import { noteLimit } from './limit-headers.js';
import { Networks } from './networks.js';

/**
 * Global, and the first guard: holds every route to its tier, before anything is looked up or read.
 * A client is its address; an IPv6 client is its /64, which one subscriber has. Clients of one /48
 * share a bucket of failed attempts, and one of the rows that they write without a user or an
 * authenticated client.
 *
 * `@nestjs/throttler` would count in every tier it knows, one after the other; here one tier holds
 * for a route.
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
  ) {
    super(options, buckets, reflector);
    this.#failures = new Networks(buckets, 'failures');
    this.#rows = new Networks(buckets, 'rows');
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.commonOptions.skipIf?.(context)) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const policy = this.routePolicies.ofContext(context);
    const { tier } = policy;
    if (tier !== 'unlimited') await this.#hold(tier, policy, request, http.getResponse<Response>());
    return true;
  }

  /** @throws DomainError rate_limited */
  async #hold(
    tier: TierName,
    policy: RoutePolicy,
    request: Request,
    response: Response,
  ): Promise<void> {
    const address = clientAddressOf(request);
    const hit = hitOf(tier, address, () =>
      holderOf({
        credential: request.headers.authorization ?? this.sessionCookies.token(request),
        method: request.method,
        path: request.path,
        goesFirst: policy.goesFirst,
      }),
    );
    const counts = address === undefined ? [] : this.#countsOf(policy, request, response);
    const refusal = () =>
      address === undefined ? undefined : this.#refusalOfNetwork(address, counts, hit);
    const taken = refusal() ?? (await this.buckets.take(hit));
    // Checked again: other requests of the network may have begun meanwhile. No `await` follows
    // before the reservation.
    const { allowed, remaining, retryAfter } = (taken.allowed ? refusal() : undefined) ?? taken;
    noteLimit(response, { tier, remaining });
    if (!allowed) throw refused(Math.ceil(retryAfter / 1000));
    if (address !== undefined) countOutcome(address, counts, response);
  }

  /**
   * Returns what counts for the network of a request: failures in the Authentication tier, and
   * anonymous rows.
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
   * Returns the denial for a network at one of its limits; its wait also covers the client's own
   * bucket.
   */
  #refusalOfNetwork(address: string, counts: readonly Count[], hit: Hit): Decision | undefined {
    const wait = Math.max(0, ...counts.map(({ networks }) => networks.wait(address)));
    if (wait === 0) return undefined;
    const own = this.buckets.peek(hit);
    return { allowed: false, remaining: 0, retryAfter: Math.max(wait, own.retryAfter) };
  }
}

/**
 * A kind of outcomes that counts for the network of a request, and whether this request's outcome
 * is one.
 */
interface Count {
  readonly networks: Networks;
  readonly isCounted: () => boolean;
}

/** Reserves the places of a request, and counts its outcome when the response is out. */
function countOutcome(address: string, counts: readonly Count[], response: Response): void {
  if (response.closed || counts.length === 0) return; // closed: no event would end the reservations
  const begun = counts.map(({ networks, isCounted }) => ({
    done: networks.begin(address),
    isCounted,
  }));
  response.once('close', () => {
    for (const { done, isCounted } of begun) done(isCounted());
  });
}

function refused(retryAfter: number): DomainError {
  return new DomainError(
    'rate_limited',
    `Too many requests from this address. Try again in ${retryAfter} s.`,
    { retryAfter },
  );
}
