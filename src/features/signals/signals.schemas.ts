import { z } from 'zod';
import { STREAM_STATUSES } from '#domain/oauth/shared-signals/streams.repository.js';
import { isVisibleLine, VISIBLE_LINE } from '#platform/text/single-line.js';

/**
 * The largest numbers of events that a receiver may ask for, acknowledge or refuse in one request.
 */
const MOST = { requested: 100, acknowledged: 1000, faults: 100 } as const;

const text = (most: number) => z.string().min(1).max(most).refine(isVisibleLine, VISIBLE_LINE);
const streamId = z.string().min(1).max(64);

/**
 * The member `delivery` of a stream, which says how events reach the receiver (Shared Signals
 * Framework §8.1.1, §11.2).
 */
const DELIVERY = z.discriminatedUnion('method', [
  z.object({
    method: z.literal('urn:ietf:rfc:8935'),
    endpoint_url: z.string().min(1).max(2048),
    authorization_header: z
      .string()
      .min(1)
      .max(4096)
      .regex(/^[\x20-\x7e]+$/, 'must be one line of ASCII')
      .optional()
      .meta({ description: 'The Authorization header of each push. No answer shows it.' }),
  }),
  z.object({ method: z.literal('urn:ietf:rfc:8936'), endpoint_url: z.string().optional() }),
]);
/** The type of a parsed {@link DELIVERY}. */
export type DeliveryBody = z.output<typeof DELIVERY>;

const SETTINGS = {
  delivery: DELIVERY.optional(),
  events_requested: z.array(z.string().min(1).max(512)).max(MOST.requested).optional(),
  description: text(256).optional(),
};

/**
 * The members of a stream that this service (the transmitter) sets. A request may contain them with
 * their present values.
 */
const SUPPLIED = {
  iss: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  events_supported: z.array(z.string()).optional(),
  events_delivered: z.array(z.string()).optional(),
  min_verification_interval: z.int().optional(),
};

/** The body of the request that creates a stream. Unknown members are ignored. */
export const NEW_STREAM = z.object({ ...SETTINGS, ...SUPPLIED }).prefault({});
/** The type of a parsed {@link NEW_STREAM}. */
export type NewStreamBody = z.output<typeof NEW_STREAM>;

/** The body of the request that changes or replaces a stream. */
export const CHANGED_STREAM = z.object({ stream_id: streamId, ...SETTINGS, ...SUPPLIED });
/** The type of a parsed {@link CHANGED_STREAM}. */
export type ChangedStreamBody = z.output<typeof CHANGED_STREAM>;

/**
 * The query of a request about a stream. It may lack the id of the stream in `OPTIONAL_STREAM`, and
 * must have it in `OF_STREAM`.
 */
export const OPTIONAL_STREAM = z.object({ stream_id: streamId.optional() });
export const OF_STREAM = z.object({ stream_id: streamId });

/** The path parameter of a poll: the id of the stream. */
export const POLLED_STREAM = z.object({ id: streamId });

/**
 * The body of the request that changes the state of a stream (Shared Signals Framework §8.1.2.2).
 */
export const NEW_STATUS = z.object({
  stream_id: streamId,
  status: z.enum(STREAM_STATUSES),
  reason: text(256).optional(),
});

/**
 * The body of the request that asks for a verification event, by which a receiver tests the
 * delivery (Shared Signals Framework §8.1.4.2).
 */
export const VERIFY = z.object({ stream_id: streamId, state: z.string().max(1024).optional() });

/**
 * A person in a request, named by the e-mail address, or by issuer and id (RFC 9493 §3.2.2,
 * §3.2.3).
 */
const SUBJECT = z.discriminatedUnion(
  'format',
  [
    z.object({ format: z.literal('email'), email: z.string().min(3).max(320) }),
    z.object({ format: z.literal('iss_sub'), iss: z.string().max(2048), sub: z.string().max(255) }),
  ],
  { error: 'must be an email or an iss_sub' },
);
/** The type of a parsed {@link SUBJECT}. */
export type SubjectBody = z.output<typeof SUBJECT>;

/**
 * The body of the request that adds a person to a stream or removes one (Shared Signals Framework
 * §8.1.3).
 */
export const CHANGED_SUBJECT = z.object({
  stream_id: streamId,
  subject: SUBJECT,
  verified: z.boolean().optional(),
});

/**
 * The body of a poll, by which a receiver gets events and acknowledges earlier ones (RFC 8936
 * §2.2).
 */
export const POLL = z
  .object({
    maxEvents: z.int().min(0).max(1_000_000).optional(),
    returnImmediately: z.boolean().default(false),
    ack: z.array(z.string().max(128)).max(MOST.acknowledged).default([]),
    setErrs: z
      .record(
        z.string().max(128),
        z.object({ err: z.string().max(128), description: z.string().max(1024).optional() }),
      )
      .refine((faults) => Object.keys(faults).length <= MOST.faults, 'has too many members')
      .default({}),
  })
  .prefault({});
/** The type of a parsed {@link POLL}. */
export type PollBody = z.output<typeof POLL>;

/** The answer to a poll: the signed events in `sets`, by their ids (RFC 8936 §2.3). */
export const POLLED_JSON = z
  .object({ sets: z.record(z.string(), z.string()), moreAvailable: z.boolean().optional() })
  .meta({ id: 'PolledSignals' });

/** A stream of signals in the JSON of an answer (Shared Signals Framework §8.1.1). */
export const STREAM_JSON = z
  .object({
    stream_id: z.string(),
    iss: z.string(),
    aud: z.string(),
    delivery: z.object({ method: z.string(), endpoint_url: z.string() }),
    events_supported: z.array(z.string()).readonly(),
    events_requested: z.array(z.string()).readonly().optional(),
    events_delivered: z.array(z.string()).readonly(),
    min_verification_interval: z.int(),
    description: z.string().optional(),
  })
  .meta({ id: 'SignalStream' });
/** The type of {@link STREAM_JSON}, by which the compiler checks answers. */
export type StreamJson = z.output<typeof STREAM_JSON>;

/**
 * The state of a stream of signals in the JSON of an answer (Shared Signals Framework §8.1.2.1).
 */
export const STATUS_JSON = z
  .object({
    stream_id: z.string(),
    status: z.enum(STREAM_STATUSES),
    reason: z.string().optional(),
  })
  .meta({ id: 'SignalStreamStatus' });
/** The type of {@link STATUS_JSON}, by which the compiler checks answers. */
export type StreamStatusJson = z.output<typeof STATUS_JSON>;

/** The metadata of the service as a transmitter of signals (Shared Signals Framework §7.1). */
export const TRANSMITTER_JSON = z
  .looseObject({
    spec_version: z.string().describe('The version of the specification.'),
    issuer: z.string().describe('The issuer of the events.'),
    jwks_uri: z.string().describe('The URL of its public keys.'),
    delivery_methods_supported: z.array(z.string()).describe('The ways to deliver events.'),
    configuration_endpoint: z.string().describe('The URL at which a receiver has its stream.'),
  })
  .describe('Metadata of the transmitter of signals (Shared Signals Framework 1.0 §7.1).');

/** The metadata of the endpoints of signals as a protected resource (RFC 9728 §2). */
export const RESOURCE_JSON = z
  .looseObject({
    resource: z.string().describe('The URL of the resource.'),
    authorization_servers: z.array(z.string()).describe('The issuers of its access tokens.'),
  })
  .describe('Metadata of a protected resource (RFC 9728 §2).');
