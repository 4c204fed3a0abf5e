import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/** The requests that are being served, and whether they are among the last: what a graceful stop waits for. */
@Injectable()
export class RequestsInFlight {
  readonly #responses = new Set<ServerResponse>();
  #isStopping = false;
  #lastCame = 0;

  /** The first of the steps, so that it sees every request. */
  readonly track: EdgeStep = (_request, response, next) => {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
    if (this.#isStopping) {
      this.#lastCame = performance.now();
      endConnectionAfter(response);
    }
    next();
  };

  get count(): number {
    return this.#responses.size;
  }

  /** Whether this process is on its way out, and wants no more traffic. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Milliseconds since the last request came, or since the stop began. */
  get quietFor(): number {
    return performance.now() - this.#lastCame;
  }

  /** From now on every answer is the last of its connection (RFC 9112 §9.6), so that clients go elsewhere. */
  beginStop(): void {
    this.#isStopping = true;
    this.#lastCame = performance.now();
    this.#responses.forEach(endConnectionAfter);
  }
}

function endConnectionAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}
