import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { UNMATCHED, routeTemplateOf } from '#platform/http/routing/route-template.js';
import type { ServiceMetrics } from './service-metrics.service.js';

/**
 * Makes the step that counts every request once, at its end. A request whose client closed the
 * connection before the response was sent is counted with the status `aborted`, as in the log.
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
 * Makes the function that counts responses to bytes that Node could not read as a request: an
 * unreadable, oversized or late head, and CONNECT.
 *
 * @returns a function that takes the status of the response, and the method if it could be read
 */
export function rawAnswerMetrics(
  metrics: ServiceMetrics,
): (status: number, method?: string) => void {
  return (status, method = '') => metrics.countRequest({ method, path: UNMATCHED, status });
}
