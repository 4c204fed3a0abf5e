/** The type of a security event token in its header (RFC 8417 §2.3, SSF §11.1.4). */
export const SECURITY_EVENT_TYPE = 'secevent+jwt';

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/';
const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/';

/** The events about people that a stream may deliver, with their URIs. */
export const EVENTS_OF_PEOPLE = {
  'session-revoked': `${CAEP}session-revoked`,
  'credential-change': `${CAEP}credential-change`,
  'session-established': `${CAEP}session-established`,
  'account-disabled': `${RISC}account-disabled`,
  'account-enabled': `${RISC}account-enabled`,
  'account-purged': `${RISC}account-purged`,
} as const;

/** The events about a stream itself, which each stream delivers. */
const EVENTS_OF_STREAMS = {
  verification: `${SSF}verification`,
  'stream-updated': `${SSF}stream-updated`,
} as const;

/** A type of events about people. */
export type PeopleEvent = keyof typeof EVENTS_OF_PEOPLE;

/** A type of events, as the queue names it. */
export type SignalType = PeopleEvent | keyof typeof EVENTS_OF_STREAMS;

const URIS: Readonly<Record<SignalType, string>> = { ...EVENTS_OF_PEOPLE, ...EVENTS_OF_STREAMS };

/** The events that a stream delivers only if its receiver asks for them by name. */
const ON_REQUEST: ReadonlySet<PeopleEvent> = new Set(['session-established']);

/**
 * Returns the events that a stream delivers: those that were asked for and are supported. Without a
 * wish it delivers all but those that need one.
 *
 * @param requested the URIs that the receiver asked for
 */
export function deliveredEvents(requested: readonly string[] | null): PeopleEvent[] {
  const all = Object.entries(EVENTS_OF_PEOPLE) as [PeopleEvent, string][];
  const isWanted = ([type, uri]: [PeopleEvent, string]) =>
    requested === null ? !ON_REQUEST.has(type) : requested.includes(uri);
  return all.filter(isWanted).map(([type]) => type);
}

/** An event of the queue. Its claims follow from it alone, so that each try sends the same. */
export interface QueuedSignal {
  readonly streamId: string;
  readonly clientId: string;
  /** The user, or the stream for an event about the stream. */
  readonly subjectId: string;
  /** The address of the user at the time of the event; null: the receiver hears of ids. */
  readonly subjectEmail: string | null;
  readonly type: SignalType;
  readonly body: Readonly<Record<string, unknown>>;
  readonly jti: string;
  readonly txn: string;
  readonly createdAt: Date;
}

/**
 * Returns the claims of a security event token (RFC 8417 §2.2): one event, without `sub` and `exp`,
 * so that no verifier takes it for an ID token (SSF §11.1.6).
 */
export function securityEventClaims(
  issuer: string,
  signal: QueuedSignal,
): Readonly<Record<string, unknown>> {
  const { clientId, type, body, jti, txn, createdAt } = signal;
  const at = Math.floor(createdAt.getTime() / 1000);
  const event = isOfStream(type) ? body : { event_timestamp: at, ...body };
  return {
    iss: issuer,
    aud: clientId,
    iat: at,
    jti,
    txn,
    sub_id: subjectOf(issuer, signal),
    events: { [URIS[type]]: event },
  };
}

/** Names the subject of an event (RFC 9493). A person without an address is named by the id. */
function subjectOf(
  issuer: string,
  { streamId, subjectId, subjectEmail, type }: QueuedSignal,
): Readonly<Record<string, string>> {
  if (isOfStream(type)) return { format: 'opaque', id: streamId };
  if (subjectEmail !== null) return { format: 'email', email: subjectEmail };
  return { format: 'iss_sub', iss: issuer, sub: subjectId };
}

function isOfStream(type: SignalType): boolean {
  return Object.hasOwn(EVENTS_OF_STREAMS, type);
}
