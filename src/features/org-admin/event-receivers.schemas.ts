import { z } from 'zod';
import { TYPE_FILTERS } from '#domain/audit/audit-kinds.js';
import { readFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import type {
  MadeReceiver,
  OwnHeader,
  ReceiverState,
  WantedReceiver,
} from '#domain/oauth/event-receivers/event-receivers.js';
import {
  RECEIVER_KINDS,
  RECEIVER_STATUSES,
  type EventReceiver,
} from '#domain/oauth/event-receivers/receivers.repository.js';
import type { UndeliveredEvent } from '#domain/oauth/event-receivers/undelivered.repository.js';
import { OVERLAP_HOURS } from './api-tokens.schemas.js';
import { LINE_OF_TEXT } from './organization.schemas.js';

/** The largest number of types, kinds and groups of events that a receiver may name. */
const MOST_TYPES = 100;

/**
 * The headers that an admin cannot set for a receiver: cookies, and headers of the connection, the
 * body or the protocol by which the events are sent.
 */
const RESERVED =
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept-encoding|cookie|proxy-.*|content-.*|webhook-.*|sec-.*)$/;

const HEADER_NAME = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9-]{1,64}$/, 'must be the name of a header')
  .refine((name) => !RESERVED.test(name), 'is a header that the service sets itself')
  .meta({ description: 'A header of each request, such as Authorization.' });

const HEADER_VALUE = z
  .string()
  .trim()
  .max(4096)
  .regex(/^[\x20-\x7e]+$/, 'must be one line of ASCII')
  .meta({ description: 'The value of the header. No answer shows it.' });

/**
 * Combines `header_name` and `header_value` of a body to one header; null if the body names no
 * header. A body with only one of the two is refused.
 */
function headerOf(
  { header_name: name, header_value: value }: HeaderFields,
  context: z.RefinementCtx,
): OwnHeader | null {
  if (typeof name === 'string' && value !== undefined) return { name, value };
  if (name === undefined || name === null ? value === undefined : false) return null;
  const message = 'must be given together with header_name';
  context.addIssue({ code: 'custom', path: ['header_value'], message });
  return z.NEVER;
}

interface HeaderFields {
  readonly header_name?: string | null | undefined;
  readonly header_value?: string | undefined;
}

const TYPES = z
  .array(z.enum(TYPE_FILTERS, { error: 'must be the type of an event' }))
  .min(1, 'must not be empty')
  .max(MOST_TYPES)
  .transform((types) => [...new Set(types)])
  .meta({ description: 'Types, kinds and groups of events; without them it gets every event.' });

const URL_TEXT = z.string().trim().min(1).max(2048);

const URL_MEANING = 'The URL to which the service sends the events.';

const AFTER = z
  .string()
  .max(128)
  .transform((text, context): WantedReceiver['after'] => {
    if (text === 'latest' || text === 'beginning') return text;
    const place = readFeedCursor(text);
    if (place) return place;
    context.addIssue({ code: 'custom', message: 'must be latest, beginning or a cursor' });
    return z.NEVER;
  })
  .default('latest')
  .meta({ description: 'Where it begins: `latest`, `beginning`, or the cursor of an event.' });

/** The body of `POST /api/v1/org/event-receivers`. */
export const CREATE_RECEIVER = z
  .strictObject({
    name: LINE_OF_TEXT.optional().describe(
      'The name that admins see. By default the host of the URL.',
    ),
    kind: z
      .enum(RECEIVER_KINDS)
      .describe('`webhook`: signed requests of Standard Webhooks; `otlp`: logs of OpenTelemetry.'),
    url: URL_TEXT.describe(URL_MEANING),
    types: TYPES.nullable().default(null),
    header_name: HEADER_NAME.optional(),
    header_value: HEADER_VALUE.optional(),
    after: AFTER,
  })
  .transform((body, context) => {
    const { name, kind, url, types, after } = body;
    return { name, kind, url, types, after, header: headerOf(body, context) };
  })
  .describe('The receiver to create.');
/** The body of `POST /api/v1/org/event-receivers` after validation, as the handler gets it. */
export type CreateReceiver = z.output<typeof CREATE_RECEIVER>;

/**
 * The body of `PATCH /api/v1/org/event-receivers/{id}`. A setting that is missing in the body stays
 * as it is.
 */
export const CHANGE_RECEIVER = z
  .strictObject({
    name: LINE_OF_TEXT.optional().describe('The name that admins see.'),
    url: URL_TEXT.optional().describe(URL_MEANING),
    types: TYPES.nullable().optional(),
    header_name: HEADER_NAME.nullable()
      .optional()
      .describe('A header of each request, such as Authorization; null removes it.'),
    header_value: HEADER_VALUE.optional(),
    status: z
      .enum(RECEIVER_STATUSES)
      .optional()
      .describe('`paused` stops the requests, and `enabled` lets them go on where they stopped.'),
  })
  .transform((body, context) => {
    const { name, url, types, status } = body;
    const header = headerOf(body, context);
    const isKept = body.header_name === undefined && header === null;
    return { name, url, types, status, header: isKept ? undefined : header };
  })
  .describe('The changes. What is missing stays as it is.');
/**
 * The body of `PATCH /api/v1/org/event-receivers/{id}` after validation, as the handler gets it.
 */
export type ChangeReceiver = z.output<typeof CHANGE_RECEIVER>;

/** The body of `POST /api/v1/org/event-receivers/{id}/rotate-secret`, which may be left out. */
export const ROTATE_SECRET = z
  .strictObject({
    overlap_hours: OVERLAP_HOURS.describe(
      'The hours for which the old secret signs beside the new one. 0 ends it at once.',
    ),
  })
  .prefault({})
  .describe('The time of the old secret. The body may be left out.');
/**
 * The body of `POST /api/v1/org/event-receivers/{id}/rotate-secret` after validation, as the
 * handler gets it.
 */
export type RotateSecret = z.output<typeof ROTATE_SECRET>;

/** The path parameter of a receiver. A text that is no UUID gets 404, and not 400. */
export const RECEIVER_ID = z.object({ id: z.string().describe('The id of the event receiver.') });

/** The path parameters of a dead letter, which is an event that the receiver did not take. */
export const RECEIVER_LETTER_ID = RECEIVER_ID.extend({
  letter_id: z.string().describe('The id of the dead letter.'),
});

const time = z.iso.datetime().nullable();

/** A receiver in the JSON of the API, without its secrets. */
export const RECEIVER_JSON = z
  .object({
    id: z.string().describe('The id of the receiver.'),
    name: z.string().describe('The name that admins see.'),
    kind: z.enum(RECEIVER_KINDS).describe('`webhook` for Standard Webhooks, `otlp` for OTLP.'),
    url: z.string().describe(URL_MEANING),
    types: z
      .array(z.string())
      .readonly()
      .nullable()
      .describe('The types, kinds and groups of events that it gets; null for every event.'),
    header_name: z
      .string()
      .nullable()
      .describe('The header that each request has; null without one. Its value stays secret.'),
    status: z
      .enum(RECEIVER_STATUSES)
      .meta({ description: 'A receiver that took nothing for 5 days is paused by the service.' }),
    created_by: z.string().describe('The id of the admin who made it.'),
    created_by_email: z.string().nullable().describe('The address of that admin.'),
    maker_is_admin: z.boolean().meta({
      description: 'False if the admin who made it, or last set its URL, is none any more.',
    }),
    created_at: z.iso.datetime().describe('The time at which it was made.'),
    old_secret_signs_until: time.describe(
      'The time until which the old secret signs too; null if there is none.',
    ),
    last_result: z
      .string()
      .nullable()
      .describe('The result of the last request, such as `answer 200`; null before the first.'),
    last_tried_at: time.describe('The time of the last request.'),
    last_taken_at: time.describe('The time of the last request that it took.'),
    next_attempt_at: time.meta({ description: 'The next try after a failure.' }),
  })
  .meta({ id: 'EventReceiver', description: 'A receiver of the audit log.' });
/** The type of a receiver in the JSON of the API, by which the compiler checks answers. */
export type ReceiverJson = z.output<typeof RECEIVER_JSON>;

/** The receivers of an organization in the JSON of the API. */
export const RECEIVERS_JSON = z
  .object({ receivers: z.array(RECEIVER_JSON).describe('The receivers.') })
  .meta({ id: 'EventReceivers', description: 'The receivers of the audit log.' });

/**
 * A new receiver, or a receiver with a new secret. The secret is only in the answers to the
 * creation and to the rotation of the secret.
 */
export const MADE_RECEIVER_JSON = RECEIVER_JSON.extend({
  secret: z.string().nullable().meta({ description: 'Signs webhooks; null for OTLP.' }),
}).meta({ id: 'NewEventReceiver', description: 'A receiver with its new secret.' });

const LETTER_JSON = z
  .object({
    id: z.string().describe('The id of the dead letter.'),
    event_id: z.string().describe('The id of the event.'),
    type: z.string().describe('The type of the event.'),
    event_at: z.iso.datetime().describe('The time of the event.'),
    dead_at: z.iso.datetime().describe('The time at which the service gave it up.'),
    result: z.string().nullable().describe('The result of the last try, such as `answer 503`.'),
  })
  .meta({ id: 'UndeliveredEvent', description: 'An event that its receiver did not take.' });

/**
 * A receiver with the numbers of its events, and with the events that it did not take (dead
 * letters).
 */
export const RECEIVER_STATE_JSON = RECEIVER_JSON.extend({
  waiting: z.int().meta({ description: 'Events that wait, counted up to 1,000.' }),
  oldest: time.meta({ description: 'The time of the oldest event that waits.' }),
  sent: z.int().meta({ description: 'Events that it took in the last 30 days.' }),
  failed: z.int().meta({ description: 'Dead letters of the last 30 days.' }),
  dead_letters: z.array(LETTER_JSON).meta({ description: 'The newest 100.' }),
}).meta({
  id: 'EventReceiverState',
  description: 'A receiver with its figures and dead letters.',
});

/** Renders a receiver as JSON, without its secrets. */
export function receiverJson(receiver: EventReceiver): ReceiverJson {
  return {
    id: receiver.id,
    name: receiver.name,
    kind: receiver.kind,
    url: receiver.url,
    types: receiver.types,
    header_name: receiver.headerName,
    status: receiver.status,
    created_by: receiver.createdBy,
    created_by_email: receiver.createdByEmail,
    maker_is_admin: receiver.isMakerAdmin,
    created_at: receiver.createdAt.toISOString(),
    old_secret_signs_until: textOf(receiver.oldSecretUntil),
    last_result: receiver.lastResult,
    last_tried_at: textOf(receiver.lastTriedAt),
    last_taken_at: textOf(receiver.lastTakenAt),
    next_attempt_at: textOf(receiver.nextAttemptAt),
  };
}

/** Renders a receiver as JSON, with the new secret that no other answer has. */
export function madeReceiverJson({
  receiver,
  secret,
}: MadeReceiver): z.output<typeof MADE_RECEIVER_JSON> {
  return { ...receiverJson(receiver), secret };
}

/** Renders a receiver with the numbers of its events, and with its dead letters, as JSON. */
export function receiverStateJson(state: ReceiverState): z.output<typeof RECEIVER_STATE_JSON> {
  const { receiver, waiting, oldest, sent, failed, letters } = state;
  const dead_letters = letters.map(letterJson);
  return {
    ...receiverJson(receiver),
    waiting,
    oldest: textOf(oldest),
    sent,
    failed,
    dead_letters,
  };
}

function letterJson(letter: UndeliveredEvent): z.output<typeof LETTER_JSON> {
  const { id, eventId, type, eventAt, deadAt, result } = letter;
  const times = { event_at: eventAt.toISOString(), dead_at: deadAt.toISOString() };
  return { id, event_id: eventId, type, ...times, result };
}

function textOf(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
