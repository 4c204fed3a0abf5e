import { EVENTS_OF_PEOPLE } from '#domain/oauth/shared-signals/security-event.js';
import {
  VERIFICATION_INTERVAL,
  type ChangedSettings,
  type WantedSettings,
} from '#domain/oauth/shared-signals/signal-streams.service.js';
import { signalsResource } from '#domain/oauth/shared-signals/receivers.repository.js';
import type { SignalStream } from '#domain/oauth/shared-signals/streams.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type {
  ChangedStreamBody,
  DeliveryBody,
  NewStreamBody,
  StreamStatusJson,
  StreamJson,
} from './signals.schemas.js';

/**
 * The URNs of the two ways in which events are delivered (Shared Signals Framework §11.2.1): the
 * service sends them, or the receiver asks for them.
 */
export const METHODS = { push: 'urn:ietf:rfc:8935', poll: 'urn:ietf:rfc:8936' } as const;

/**
 * Converts a stream to the JSON of its configuration (Shared Signals Framework §8.1.1). It never
 * contains the Authorization header for the receiver, which is a secret.
 */
export function streamJson(stream: SignalStream, issuer: string): StreamJson {
  const { id, clientId, method, endpointUrl, events, eventsRequested, description } = stream;
  return {
    stream_id: id,
    iss: issuer,
    aud: clientId,
    delivery: {
      method: METHODS[method],
      endpoint_url: endpointUrl ?? `${signalsResource(issuer)}/poll/${id}`,
    },
    events_supported: Object.values(EVENTS_OF_PEOPLE),
    ...(eventsRequested === null ? {} : { events_requested: eventsRequested }),
    events_delivered: events.map((type) => EVENTS_OF_PEOPLE[type]),
    min_verification_interval: VERIFICATION_INTERVAL,
    ...(description === null ? {} : { description }),
  };
}

/** Converts the state of a stream to JSON (Shared Signals Framework §8.1.2.1). */
export function statusJson({ id, status, statusReason }: SignalStream): StreamStatusJson {
  return {
    stream_id: id,
    status,
    ...(statusReason === null ? {} : { reason: statusReason }),
  };
}

/**
 * Returns the settings of a new or replaced stream. Without `delivery` the receiver polls (Shared
 * Signals Framework §8.1.1.1), which means that it asks for the events.
 */
export function settingsOf(body: NewStreamBody): WantedSettings {
  return {
    delivery: body.delivery === undefined ? { method: 'poll' } : deliveryOf(body.delivery),
    eventsRequested: body.events_requested ?? null,
    description: body.description ?? null,
  };
}

/**
 * Returns the settings of a stream after a change. Members that the request does not have keep
 * their values.
 */
export function changedSettings(current: SignalStream, body: ChangedStreamBody): ChangedSettings {
  const wanted = settingsOf(body);
  const { endpointUrl } = current;
  const kept =
    endpointUrl === null
      ? ({ method: 'poll' } as const)
      : ({ method: 'push', endpointUrl, authorization: undefined } as const);
  return {
    delivery: body.delivery === undefined ? kept : wanted.delivery,
    eventsRequested:
      body.events_requested === undefined ? current.eventsRequested : wanted.eventsRequested,
    description: body.description === undefined ? current.description : wanted.description,
    keepsDelivery: body.delivery === undefined,
  };
}

function deliveryOf(body: DeliveryBody): WantedSettings['delivery'] {
  if (body.method === METHODS.poll) return { method: 'poll' };
  const { endpoint_url: endpointUrl, authorization_header: authorization } = body;
  return { method: 'push', endpointUrl, authorization };
}

/**
 * Checks that a request does not change the members of a stream that this service sets (Shared
 * Signals Framework §8.1.1.3).
 *
 * @throws DomainError invalid_request for another value of such a member
 */
export function assertSupplied(body: NewStreamBody, expected: StreamJson): void {
  const names = ['iss', 'aud', 'events_supported', 'events_delivered'] as const;
  for (const name of names) {
    const value = body[name];
    if (value === undefined || same(value, expected[name])) continue;
    throw new DomainError('invalid_request', `${name}: must be as the transmitter supplies it`);
  }
  const { min_verification_interval: interval } = body;
  if (interval !== undefined && interval !== expected.min_verification_interval) {
    throw new DomainError(
      'invalid_request',
      'min_verification_interval: must be as the transmitter supplies it',
    );
  }
  const { delivery } = body;
  const isMoved =
    delivery?.method === METHODS.poll &&
    delivery.endpoint_url !== undefined &&
    delivery.endpoint_url !== expected.delivery.endpoint_url;
  if (isMoved) {
    throw new DomainError('invalid_request', 'delivery.endpoint_url: the transmitter supplies it');
  }
}

/**
 * Returns true if two values are equal. A list with one item equals the item itself, and the order
 * of a list does not matter.
 */
function same(one: string | readonly string[], other: string | readonly string[]): boolean {
  const [a, b] = [[one].flat().toSorted(), [other].flat().toSorted()];
  return a.length === b.length && a.every((value, n) => value === b[n]);
}
