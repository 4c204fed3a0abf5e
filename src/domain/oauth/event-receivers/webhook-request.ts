import { createHmac } from 'node:crypto';
import type { FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { feedJson } from '#domain/audit/feed/event-json.js';
import { webhookKey } from './receiver-secrets.js';

/** The body and the headers of a request to a receiver. */
export interface ReceiverRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/**
 * Writes the request of a webhook for an event (Standard Webhooks). The header `webhook-id` has the
 * id of the event and is the same at each try, so that a receiver recognizes a repeated event.
 *
 * @param secrets the secrets that sign the request: the present one, and for some hours after a
 *   rotation also the old one
 * @param now the present time, in seconds since 1970
 */
export function webhookRequest(
  event: FeedRow,
  secrets: readonly string[],
  now: number,
): ReceiverRequest {
  const body = JSON.stringify(feedJson(event));
  const signed = `${event.id}.${now}.${body}`;
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', webhookKey(secret)).update(signed).digest('base64')}`,
  );
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': event.id,
      'webhook-timestamp': String(now),
      'webhook-signature': signatures.join(' '),
    },
    body,
  };
}
