import type { Request } from 'express';
import { readCookie, readCookieValues } from '#platform/http/access/cookies.js';
import { wordsBy } from '../../engine/structures.js';
import { rule, type FuzzTarget } from '../../engine/target.js';

const NAMES = ['__Host-svc_session', 'svc', '__proto__', 'constructor', 'toString'];

export const target: FuzzTarget = {
  parser: 'readCookie, readCookieValues',
  seeds: [
    '__Host-svc_session=abc; svc=1',
    'svc="quoted"; svc=%7B%22a%22%3A1%7D; other=x',
    '__proto__=x; constructor=y; svc=a; svc=b',
    'svc=a=b;;=;svc; svc=%E0%A4%A',
  ].map((text) => Buffer.from(text)),
  dictionary: [
    '__Host-svc_session=',
    'svc=',
    '; ',
    ';',
    '=',
    '%22',
    '%',
    '"',
    '%F0%9F',
    '$Version=1',
  ],
  structure: wordsBy(/%[\da-f]{2}|[\w-]+|[^]/gi),
  longest: 1024,
  run(input) {
    const header = input.toString('latin1');
    const request = requestWith(header);
    for (const name of NAMES) {
      const values = readCookieValues(request, name);
      rule(
        values.every((value) => typeof value === 'string'),
        'a value that the request did not send',
      );
      rule(isSame(values, plainValues(header, name)), 'two readers find different values');
      const one = readCookie(request, name);
      rule(one === (values.length === 1 ? values[0] : undefined), 'one of two values is used');
    }
    return readCookie(request, 'svc') !== undefined;
  },
};

function requestWith(cookie: string): Request {
  return { headers: { cookie } } as unknown as Request;
}

/**
 * Returns the values of a cookie by the plain grammar of RFC 6265 §4.2.1 and URL decoding. The
 * target compares them with the result of the service's parser.
 */
function plainValues(header: string, name: string): Set<string> {
  const values = header.split(';').flatMap((pair) => {
    const equals = pair.indexOf('=');
    if (equals < 0 || trimmed(pair.slice(0, equals)) !== name) return [];
    return [decoded(trimmed(pair.slice(equals + 1)))];
  });
  return new Set(values);
}

/** Removes spaces and tabs (WSP in RFC 6265 §5.2) at both ends of a text. */
const trimmed = (text: string) => text.replaceAll(/^[ \t]+|[ \t]+$/g, '');

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function isSame(values: readonly string[], expected: ReadonlySet<string>): boolean {
  return values.length === expected.size && values.every((value) => expected.has(value));
}
