import { DomainError } from '#platform/errors/domain-error.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { scimJson } from '#platform/http/errors/error-formats.js';
import { entityTag, type Tagged } from '../resources/resource-json.js';
import type { BulkOperation } from './bulk-request.js';

/** The outcome of one operation in the response to a bulk request (RFC 7644 §3.7.3). */
export interface BulkOutcome {
  readonly method: string;
  readonly bulkId?: string;
  readonly location?: string;
  readonly version?: string;
  readonly status: string;
  readonly response?: unknown;
}

const STATUS: Readonly<Record<string, string>> = { POST: '201', DELETE: '204' };

/**
 * Builds the outcome of an operation that succeeded.
 * @param made the resource after the operation; undefined for a removed resource
 */
export function succeeded(
  { method, bulkId }: BulkOperation,
  location: string,
  made: Tagged | undefined,
): BulkOutcome {
  return {
    method,
    ...(bulkId === undefined ? {} : { bulkId }),
    location,
    ...(made ? { version: entityTag(made) } : {}),
    status: STATUS[method] ?? '200',
  };
}

/**
 * Builds the outcome of an operation that was refused or failed, with its error as the response.
 */
export function refused(
  { method, bulkId }: BulkOperation,
  error: DomainError,
  location?: string,
): BulkOutcome {
  return {
    method,
    ...(bulkId === undefined ? {} : { bulkId }),
    ...(location === undefined ? {} : { location }),
    status: String(error.status),
    response: JSON.parse(scimJson(error).content),
  };
}

/** Builds the outcome of an operation that failed, and logs an internal error. */
export function failed(operation: BulkOperation, thrown: unknown, location?: string): BulkOutcome {
  const error = asDomainError(thrown);
  if (error.status >= 500) logError(error);
  return refused(operation, error, location);
}

export function noOwnId(): DomainError {
  return new DomainError('invalid_value', 'A POST needs a bulkId that no other POST has.');
}

export function tooLate(): DomainError {
  return new DomainError(
    'timed_out',
    'The bulk request has taken too long, and this operation did not begin. Send it again.',
  );
}

export function unresolved(): DomainError {
  return new DomainError(
    'invalid_value',
    'The operation refers to an operation that created nothing.',
  );
}
