import { OutboundFailed, OutboundRefused } from '#platform/outbound/outbound-http.service.js';

/** Milliseconds for a whole request. */
export const ANSWER_WITHIN = 5_000;

/** The words for an admin about a request without an answer that counts. The log has the cause. */
export function wordsOf(error: unknown): string {
  if (error instanceof OutboundRefused) return 'an address that is not allowed';
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
