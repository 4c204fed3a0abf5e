import type { Request } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { bearerSecret, presentedToken } from '#platform/http/access/presented-token.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';

export const target: FuzzTarget = {
  parser: 'presentedToken, bearerSecret, requestPath',
  seeds: [
    'Bearer abc.def-~+/=',
    'DPoP abc',
    'bearer  x',
    'Basic dXNlcjpw',
    '/v1/me?x=1',
    'http://svc.example.com/a/../b',
  ].map((text) => Buffer.from(text)),
  dictionary: ['Bearer ', 'DPoP ', 'Basic ', 'https://', '?', '#', '/', ',', '=', '//', '*'],
  structure: wordsBy(/[\w-]+|[^]/g),
  longest: 1024,
  run(input) {
    const header = input.toString('latin1');
    const path = requestPath({ url: header });
    rule(!path.includes('?'), 'a path with a query');
    const headers = { authorization: header };
    const secret = bearerSecret({ headers });
    rule(secret === undefined || header.endsWith(secret), 'a secret that the header does not have');
    const presented = attempt(
      () => presentedToken(requestWith(header), 'cookie'),
      isUnauthenticated,
    );
    if (!presented) return false;
    rule(presented.scheme !== 'cookie', 'the cookie is used beside a header');
    rule(/^[\w.~+/-]+=*$/.test(presented.token), 'a token with other characters');
    rule(header.endsWith(` ${presented.token}`), 'a token that the header does not have');
    return true;
  },
};

function isUnauthenticated(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'unauthenticated';
}

/** Makes a request that has only the parts the parser reads. Its client IP address is fixed. */
function requestWith(authorization: string): Request {
  const app = { get: () => () => '192.0.2.1' };
  const request = {
    headers: { authorization },
    headersDistinct: {},
    method: 'GET',
    url: '/',
    socket: {},
    app,
  };
  return request as unknown as Request;
}
