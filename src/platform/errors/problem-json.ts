import type { Response } from 'express';
import { CATALOGUE } from './catalogue.js';
import type { DomainError } from './domain-error.js';

/** Answers with an RFC 9457 problem document, the voice of `/v1/*`, `/api/v1/*` and the WebAuthn JSON. */
export function sendProblem(response: Response, error: DomainError): void {
  const { title } = CATALOGUE[error.code];
  setErrorHeaders(response, error);
  response
    .status(error.status)
    .type('application/problem+json')
    .send(
      JSON.stringify({
        type: 'about:blank',
        title,
        status: error.status,
        detail: error.detail,
        code: error.code,
      }),
    );
}

/** The headers an error owes its client in every voice: the challenge of a 401, how long to wait, when to hang up. */
export function setErrorHeaders(response: Response, error: DomainError): void {
  if (error.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (error.retryAfter !== undefined) response.setHeader('Retry-After', String(error.retryAfter));
  // What is left of an oversized body will not be read: the connection cannot be used again.
  if (error.status === 413) response.setHeader('Connection', 'close');
}
