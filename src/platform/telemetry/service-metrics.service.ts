import { Inject, Injectable, Optional } from '@nestjs/common';
import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';

/** The outcomes of authentications: the values of the label `event_type`. */
const AUTH_EVENTS = [
  'enrollment',
  'browser_login_success',
  'fido2_login_success',
  'fido2_login_failure',
  'authorization_code_success',
] as const;
export type AuthEvent = (typeof AUTH_EVENTS)[number];

/** The kinds of credentials: the values of the label `type`. */
const CREDENTIALS = ['ssh', 'aws', 'github', 'oidc'] as const;
export type CredentialType = (typeof CREDENTIALS)[number];

/**
 * The methods that are counted by name (RFC 9110 §9, RFC 5789). Any other method is counted as
 * `OTHER`, because a client may send any text.
 */
const METHODS = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
]);

/**
 * The upper bounds of the histogram's buckets in seconds, from the duration of the fastest route to
 * the time limit for a request.
 */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The facts about a finished request that the metrics show. */
export interface CountedRequest {
  readonly method: string;
  /**
   * The template of the request's route. It is never the path that the client sent, because each
   * new value would add a series to the metrics.
   */
  readonly path: string;
  readonly status: number | 'aborted';
  /** The duration of the request in seconds; undefined if its start is unknown. */
  readonly seconds?: number;
}

/** The metrics of one process, in the form in which they pass between processes. */
export type ExportedMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** The injection token of the function {@link GatherMetrics}. Only workers provide it. */
export const GATHER_METRICS = Symbol('GatherMetrics');

/** Returns the metrics of every worker of this service, including those that have ended. */
export type GatherMetrics = () => Promise<readonly ExportedMetrics[]>;

/** Returns the sum of the metrics of several processes. */
export function sumOfMetrics(exported: readonly ExportedMetrics[]): Promise<ExportedMetrics> {
  return AggregatorRegistry.aggregate([...exported]).getMetricsAsJSON();
}

/** Keeps the four metrics of this process, and renders them for `/metrics`. */
@Injectable()
export class ServiceMetrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests served',
    labelNames: ['method', 'path', 'status'],
    registers: [this.#registry],
  });
  readonly #durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Request latency',
    labelNames: ['method', 'path'],
    buckets: BUCKETS,
    registers: [this.#registry],
  });
  readonly #authEvents = new Counter({
    name: 'svc_auth_events_total',
    help: 'Authentication outcomes',
    labelNames: ['event_type'],
    registers: [this.#registry],
  });
  readonly #issued = new Counter({
    name: 'svc_credential_issuance_total',
    help: 'Credentials issued',
    labelNames: ['type'],
    registers: [this.#registry],
  });

  constructor(@Optional() @Inject(GATHER_METRICS) private readonly gather?: GatherMetrics) {
    // Each series starts at zero, so that a monitoring system sees the first event as an increase.
    for (const event_type of AUTH_EVENTS) this.#authEvents.inc({ event_type }, 0);
    for (const type of CREDENTIALS) this.#issued.inc({ type }, 0);
  }

  /**
   * Counts a finished request by method, route and status, and records its duration if that is
   * known.
   */
  countRequest({ method: token, path, status, seconds }: CountedRequest): void {
    const method = METHODS.has(token) ? token : 'OTHER';
    this.#requests.inc({ method, path, status });
    if (seconds !== undefined) this.#durations.observe({ method, path }, seconds);
  }

  /** Counts the outcome of an authentication, such as a failed login. */
  countAuthEvent(event_type: AuthEvent): void {
    this.#authEvents.inc({ event_type });
  }

  /**
   * Waits for a browser's login, and counts whether it succeeds. An internal error counts as
   * neither success nor failure.
   */
  async countLogin<Login>(attempt: Promise<Login>): Promise<Login> {
    try {
      const login = await attempt;
      this.countAuthEvent('browser_login_success');
      return login;
    } catch (error) {
      if (asDomainError(error).status < 500) this.countAuthEvent('fido2_login_failure');
      throw error;
    }
  }

  /** Counts an issued credential by its type. */
  countIssued(type: CredentialType): void {
    this.#issued.inc({ type });
  }

  /** Returns the metrics of this process, which another process adds to its own. */
  export(): Promise<ExportedMetrics> {
    return this.#registry.getMetricsAsJSON();
  }

  /**
   * Returns the series in the text format of Prometheus, without HELP and TYPE lines. With workers
   * they are the sums over all workers, because a scraper reaches any one of them.
   */
  async scrape(): Promise<string> {
    const registry = this.gather
      ? AggregatorRegistry.aggregate([...(await this.gather())])
      : this.#registry;
    const lines = (await registry.metrics()).split('\n');
    return `${lines.filter((line) => line !== '' && !line.startsWith('#')).join('\n')}\n`;
  }
}
