import { STATUS_CODES } from 'node:http';
import type { DomainError } from '#platform/errors/domain-error.js';
import { problemJson } from '#platform/http/errors/problem-json.js';
import type { HeaderLine } from '#platform/http/contract/response-headers.js';

/**
 * The bytes of an answer to what never became a request, and so has neither a response nor a path to choose the voice by:
 * a problem document, with which the connection ends.
 *
 * @param headers what every answer carries
 */
export function rawAnswer(error: DomainError, headers: readonly HeaderLine[]): string {
  const { type, content } = problemJson(error);
  const lines: HeaderLine[] = [
    ...headers,
    ['Content-Type', type],
    ['Content-Length', String(Buffer.byteLength(content))],
    ['Date', new Date().toUTCString()],
    ['Connection', 'close'],
  ];
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
    '',
    content,
  ].join('\r\n');
}
