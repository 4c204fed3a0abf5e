/** The type of a security event token, which its header states (RFC 8417 §2.3, SSF §11.1.4). */
export const SECURITY_EVENT_TYPE = 'secevent+jwt';

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/';
const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/';

/**
 * The types of events about people that a stream may contain, with their URIs. CAEP events are
 * about sessions and credentials, RISC events about accounts.
 */
export const EVENTS_OF_PEOPLE = {
  'session-revoked': `${CAEP}session-revoked`,
  'credential-change': `${CAEP}credential-change`,
  'session-established': `${CAEP}session-established`,
  'account-disabled': `${RISC}account-disabled`,
  'account-enabled': `${RISC}account-enabled`,
  'account-purged': `${RISC}account-purged`,
} as const;

/**
 * The types of events about a stream itself, which every stream contains. SSF is the Shared Signals
 * Framework.
 */
const EVENTS_OF_STREAMS = {
  verification: `${SSF}verification`,
  'stream-updated': `${SSF}stream-updated`,
} as const;

/** The short name of an event type in {@link EVENTS_OF_PEOPLE}. */
export type PeopleEvent = keyof typeof EVENTS_OF_PEOPLE;

/** A type of event by the name that the queue uses. */
export type SignalType = PeopleEvent | keyof typeof EVENTS_OF_STREAMS;

const URIS: Readonly<Record<SignalType, string>> = { ...EVENTS_OF_PEOPLE, ...EVENTS_OF_STREAMS };

/**
 * The types of events that a stream contains only if its receiver asks for them by name, because
 * every sign-in makes such an event.
 */
const ON_REQUEST: ReadonlySet<PeopleEvent> = new Set(['session-established']);

/**
 * Returns the types of events that a stream contains: those that the receiver asked for and the
 * service supports. If the receiver did not choose, the stream contains all types but those in
 * {@link ON_REQUEST}.
 *
 * @param requested the URIs that the receiver asked for
 */
export function deliveredEvents(requested: readonly string[] | null): PeopleEvent[] {
  const all = Object.entries(EVENTS_OF_PEOPLE) as [PeopleEvent, string][];
  const isWanted = ([type, uri]: [PeopleEvent, string]) =>
    requested === null ? !ON_REQUEST.has(type) : requested.includes(uri);
  return all.filter(isWanted).map(([type]) => type);
}

/**
 * An event in the queue. Its claims are made from these values alone, so that each attempt to send
 * the event has the same claims.
 */
export interface QueuedSignal {
  readonly streamId: string;
  readonly clientId: string;
  /** The id of the user, or of the stream for an event about the stream. */
  readonly subjectId: string;
  /**
   * The e-mail address of the user at the time of the event; null if the receiver gets ids instead.
   */
  readonly subjectEmail: string | null;
  readonly type: SignalType;
  readonly body: Readonly<Record<string, unknown>>;
  readonly jti: string;
  readonly txn: string;
  readonly createdAt: Date;
}

/**
 * Returns the claims of a security event token (RFC 8417 §2.2) about one event. It has no `sub` and
 * no `exp`, so that no verifier takes it for an ID token (SSF §11.1.6).
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

/**
 * Returns the subject of an event in the form of RFC 9493. A person without an e-mail address is
 * named by the id.
 */
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
