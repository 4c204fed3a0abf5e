import { OutboundFailed, OutboundRefused } from '#platform/outbound/outbound-http.service.js';

/** The milliseconds after which a request without a response is ended. */
export const ANSWER_WITHIN = 5_000;

/**
 * The error of a request that was ended before its response, so that a waiting request to another
 * client could begin.
 */
export class GaveWay extends Error {
  constructor() {
    super('no answer within a second, while other applications waited');
  }
}

/**
 * The error of an attempt that sent no request because of a fault of the service itself, such as a
 * slow read of the database. The error says nothing about the receiver.
 */
export class OwnFault extends Error {
  override readonly name = 'OwnFault';
}

/**
 * Returns the reason, in words for an admin, why a request got no response. The details are only in
 * the log.
 */
export function wordsOf(error: unknown): string {
  if (error instanceof GaveWay) return error.message;
  if (error instanceof OutboundRefused) return 'a URL that is not allowed';
  return error instanceof OutboundFailed ? WORDS[error.reason] : 'no request was sent';
}

const WORDS: Readonly<Record<OutboundFailed['reason'], string>> = {
  name: 'the name of the server is not known',
  connection: 'no connection',
  tls: 'the certificate or TLS was refused',
  redirect: 'a redirect, which is not followed',
  size: 'an answer of more than 64 KiB',
  time: `no answer within ${ANSWER_WITHIN / 1000} seconds`,
};
