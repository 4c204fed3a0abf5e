import type { ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { DomainError } from '#platform/errors/domain-error.js';

const logger = new Logger('errors');

/**
 * Logs an error. An error of the client (4xx, or 501 for a feature that the service does not have)
 * is logged as a warning. An error of the service (5xx) is logged as an error, with its cause.
 */
export function logError(error: DomainError): void {
  if (error.status < 500 || error.code === 'not_implemented') {
    logger.warn({ code: error.code, ...(error.cause ? { err: error.cause } : {}) }, error.detail);
    return;
  }
  logger.error({ code: error.code, err: error.cause ?? error }, error.detail);
}

/**
 * The key under which the error code is stored on its response. A WeakMap of all responses would
 * cost time in the garbage collector.
 */
const ERROR = Symbol('code of the error');
type FailedResponse = ServerResponse & { [ERROR]?: string };

/**
 * Records the error code of a response, for logs and metrics. It is a code of the catalogue, or an
 * OAuth error code (RFC 6749 §5.2).
 */
export function noteResponseError(response: ServerResponse, code: string): void {
  (response as FailedResponse)[ERROR] = code;
}

/** Returns the code of the error that a response carries; undefined if it carries none. */
export function responseErrorOf(response: ServerResponse): string | undefined {
  return (response as FailedResponse)[ERROR];
}
