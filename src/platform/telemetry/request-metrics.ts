import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { UNMATCHED, routeTemplateOf } from '#platform/http/routing/route-template.js';
import type { ServiceMetrics } from './service-metrics.service.js';

/**
 * Counts every request once, when it is over. One whose client hung up before the answer was out has no status that
 * anybody saw: it is counted as `aborted`, as the log calls it.
 */
export function requestMetrics(metrics: ServiceMetrics): EdgeStep {
  return (request, response, next) => {
    const start = systemClock.monotonic();
    response.once('close', () => {
      metrics.countRequest({
        method: request.method ?? '',
        path: routeTemplateOf(request),
        status: response.writableFinished ? response.statusCode : 'aborted',
        seconds: (systemClock.monotonic() - start) / 1000,
      });
    });
    next();
  };
}

/**
 * Counts what never became a request: an unreadable or oversized head, or one that took too long, and CONNECT.
 *
 * @returns takes the status of the answer, and the method where one was read
 */
export function rawAnswerMetrics(
  metrics: ServiceMetrics,
): (status: number, method?: string) => void {
  return (status, method = '') => metrics.countRequest({ method, path: UNMATCHED, status });
}
