import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  InjectThrottlerOptions,
  InjectThrottlerStorage,
  ThrottlerGuard,
  type ThrottlerModuleOptions,
} from './buckets/throttler.js';
import type { Request, Response } from 'express';
import { responseErrorOf } from '#platform/http/errors/error-log.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { RoutePolicy } from '#platform/http/routing/route-policy.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Buckets, type Hit } from './buckets/buckets.js';
import { hitOf, holderOf } from './hit.js';
import { isFailedAttempt } from './failed-attempt.js';
import type { Decision } from '#platform/gcra/gcra.js';
import { noteLimit } from './limit-headers.js';
import { Networks } from './networks.js';
import type { TierName } from './buckets/tiers.js';

/**
 * Global, and the first guard: holds every route to its tier, before anything is looked up or read. A client is its address;
 * an IPv6 client is its /64, which one subscriber has. Clients of one /48 share a bucket of failed attempts.
 *
 * `@nestjs/throttler` would count in every tier it knows, one after the other; here one tier holds for a route.
 */
@Injectable()
export class TierGuard extends ThrottlerGuard {
  readonly #networks: Networks;

  constructor(
    @InjectThrottlerOptions() options: ThrottlerModuleOptions,
    @InjectThrottlerStorage() private readonly buckets: Buckets,
    reflector: Reflector,
    private readonly routePolicies: RoutePolicies,
    private readonly sessionCookies: SessionCookies,
  ) {
    super(options, buckets, reflector);
    this.#networks = new Networks(buckets);
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
    { failureStatus }: RoutePolicy,
    request: Request,
    response: Response,
  ): Promise<void> {
    const address = clientAddressOf(request);
    const hit = hitOf(tier, address, () =>
      holderOf(request.headers.authorization ?? this.sessionCookies.token(request)),
    );
    const isAttempt = tier === 'authentication' && address !== undefined;
    const refusal = () => (isAttempt ? this.#refusalOfNetwork(address, hit) : undefined);
    const taken = refusal() ?? (await this.buckets.take(hit));
    // Checked again: other attempts of the network may have begun meanwhile. No `await` follows before the reservation.
    const { allowed, remaining, retryAfter } = (taken.allowed ? refusal() : undefined) ?? taken;
    noteLimit(response, { tier, remaining });
    if (!allowed) throw refused(Math.ceil(retryAfter / 1000));
    if (isAttempt) this.#countFailure(address, response, failureStatus);
  }

  /** Returns the denial for a network with too many failed attempts; its wait also covers the client's own bucket. */
  #refusalOfNetwork(address: string, hit: Hit): Decision | undefined {
    const wait = this.#networks.wait(address);
    if (wait === 0) return undefined;
    const own = this.buckets.peek(hit);
    return { allowed: false, remaining: 0, retryAfter: Math.max(wait, own.retryAfter) };
  }

  #countFailure(address: string, response: Response, failureStatus: number | undefined): void {
    if (response.closed) return; // the connection went while the limit was asked for: no event ends this attempt
    const done = this.#networks.begin(address);
    response.once('close', () => {
      const { statusCode: status } = response;
      const error = responseErrorOf(response);
      done(isFailedAttempt({ status, error }, failureStatus));
    });
  }
}

function refused(retryAfter: number): DomainError {
  return new DomainError(
    'rate_limited',
    `Too many requests from this address. Try again in ${retryAfter} s.`,
    { retryAfter },
  );
}
