import { STATUS_CODES } from 'node:http';
import { systemClock } from '#platform/clock/clock.js';
import type { HeaderLine } from '#platform/http/contract/kept-headers.js';
import type { ErrorBody } from '#platform/http/errors/error-formats.js';

/**
 * Makes the bytes of a response to input that is no request, for which there is neither a response
 * object nor a path. The response is a problem document, after which the connection is closed.
 *
 * @param headers the headers of every response
 */
export function rawResponse(
  status: number,
  { type, content }: ErrorBody,
  headers: readonly HeaderLine[],
): string {
  const lines: HeaderLine[] = [
    ...headers,
    ['Content-Type', type],
    ['Content-Length', String(Buffer.byteLength(content))],
    ['Date', systemClock.now().toUTCString()],
    ['Connection', 'close'],
  ];
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
    '',
    content,
  ].join('\r\n');
}
