import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/**
 * Counts the requests that are being served, because a graceful stop waits for them. It only counts
 * them, because a `Set` that changes with every request keeps the garbage of all requests alive
 * until V8 collects the old generation (docs/performance/garbage.md).
 */
@Injectable()
export class RequestsInFlight {
  #count = 0;
  #isStopping = false;
  #lastCame = 0;

  /**
   * Counts a request until its response is closed. It is the first step of all, so that it counts
   * every request.
   */
  readonly track: EdgeStep = (_request, response, next) => {
    this.#count += 1;
    response.once('close', () => {
      this.#count -= 1;
    });
    if (this.#isStopping) this.#lastCame = systemClock.monotonic();
    next();
  };

  get count(): number {
    return this.#count;
  }

  /** True after the stop has begun. A load balancer should then send no more traffic. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /**
   * The milliseconds since the last request came, or since the stop began if no request came after
   * that.
   */
  get quietFor(): number {
    return systemClock.monotonic() - this.#lastCame;
  }

  /**
   * Begins the stop. From now on every response closes its connection (RFC 9112 §9.6), so that
   * clients connect to another replica.
   */
  beginStop(): void {
    this.#isStopping = true;
    this.#lastCame = systemClock.monotonic();
  }

  /**
   * Makes a response close its connection if the stop has begun. It must be called right before the
   * head of the response is written.
   */
  readonly endConnection = (response: ServerResponse): void => {
    if (this.#isStopping) response.setHeader('Connection', 'close');
  };
}
