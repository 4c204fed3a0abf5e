import { Logger } from '@nestjs/common';
import type { DomainError } from '#platform/errors/domain-error.js';

const logger = new Logger('errors');

/** Logs an error as the client's (4xx, warn) or ours (5xx, error with its cause), whatever voice answers it. */
export function logError(error: DomainError): void {
  if (error.status < 500) {
    logger.warn({ code: error.code, ...(error.cause ? { err: error.cause } : {}) }, error.detail);
    return;
  }
  logger.error({ code: error.code, err: error.cause ?? error }, error.detail);
}
