import { Injectable, type ExecutionContext } from '@nestjs/common';
import { ThrottlerGuard, normalizeIp } from '@nestjs/throttler';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { clientAddressOf } from '#platform/http/client-origin.js';
import { FallbackController } from '#platform/http/routing/fallback.controller.js';
import { requestPath } from '#platform/http/routing/request-path.js';
import { keepHeader } from '#platform/http/edge/response-headers.js';
import { TIERS, tierOf, type TierName } from './tiers.js';

/**
 * Global, and the first guard: holds every route to its tier, before anything is looked up or read. A client is its address;
 * one of IPv6 is its /64, since that is what a single subscriber has.
 *
 * `@nestjs/throttler` would count in every tier it knows, one after the other; here one tier holds for a route.
 */
@Injectable()
export class TierGuard extends ThrottlerGuard {
  /** By method and template: as many as there are routes. */
  readonly #tiers = new Map<string, TierName | 'unlimited'>();

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.commonOptions.skipIf?.(context)) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const isUnmatched = context.getClass() === FallbackController;
    const tier = isUnmatched
      ? (tierOf(request.method, requestPath(request)) ?? 'unlimited')
      : this.#tierOfRoute(request);
    if (tier !== 'unlimited') await this.#take(tier, request, http.getResponse<Response>());
    return true;
  }

  /** A route that no row speaks of is limited all the same. */
  #tierOfRoute({ method, route }: Request): TierName | 'unlimited' {
    const template = (route as { readonly path: string }).path;
    const name = `${method} ${template}`;
    const known = this.#tiers.get(name);
    if (known) return known;
    const tier = tierOf(method, template) ?? 'general';
    this.#tiers.set(name, tier);
    return tier;
  }

  /** @throws DomainError rate_limited */
  async #take(tier: TierName, request: Request, response: Response): Promise<void> {
    const { burst, interval } = TIERS[tier];
    const bucket = `${tier} ${client(request)}`;
    const hit = await this.storageService.increment(bucket, burst * interval, burst, 0, tier);
    keepHeader(response, 'x-ratelimit-limit', String(burst));
    keepHeader(response, 'x-ratelimit-remaining', String(burst - hit.totalHits));
    if (!hit.isBlocked) return;
    const retryAfter = hit.timeToBlockExpire;
    response.setHeader('x-ratelimit-after', retryAfter);
    throw new DomainError(
      'rate_limited',
      `Too many requests from this address. Try again in ${retryAfter} s.`,
      { retryAfter },
    );
  }
}

/** Who is limited. Those whose address is gone with their connection share one bucket. */
function client(request: Request): string {
  const address = clientAddressOf(request);
  return address === undefined ? 'unknown' : normalizeIp(address);
}
