import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/** Counts the requests that are being served, because a graceful stop waits for them. */
@Injectable()
export class RequestsInFlight {
  readonly #responses = new Set<ServerResponse>();
  #isStopping = false;
  #lastCame = 0;

  /**
   * Counts a request until its response is closed. It is the first step of all, so that it counts
   * every request.
   */
  readonly track: EdgeStep = (_request, response, next) => {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
    if (this.#isStopping) {
      this.#lastCame = systemClock.monotonic();
      endConnectionAfter(response);
    }
    next();
  };

  get count(): number {
    return this.#responses.size;
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
    this.#responses.forEach(endConnectionAfter);
  }
}

function endConnectionAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
