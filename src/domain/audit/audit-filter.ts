/**
 * The position of an event in the order of the log, which is sorted by time (to the microsecond)
 * and id.
 */
export interface AuditPlace {
  /** The time of the event, as RFC 3339 in UTC. */
  readonly at: string;
  readonly id: string;
}

/**
 * The users that a filter of events names: by their ids, and by the e-mail addresses that they had.
 */
export interface AuditPeople {
  readonly ids: readonly string[];
  readonly addresses: readonly string[];
}

/** The security keys that a filter of events names: one key, or every key of some models. */
export interface AuditKeys {
  readonly id?: string | undefined;
  readonly aaguids: readonly string[];
}

/** A filter of events. It selects the events that match every field that is set. */
export interface AuditFilter {
  readonly types?: readonly string[] | undefined;
  /**
   * The people that an event must concern. Each element must match the actor, the subject, or an
   * e-mail address in the details of the event. E-mail addresses are needed because the log keeps
   * an event longer than the service keeps its users.
   */
  readonly people?: readonly AuditPeople[] | undefined;
  /** The id of a client or application, or the name that it had at the time of the event. */
  readonly client?: string | undefined;
  readonly keys?: AuditKeys | undefined;
  /**
   * The target of an event: its name or id, the ARN of an AWS role, or the owner of a GitHub
   * installation.
   */
  readonly target?: string | undefined;
  /** An IP address or a network, in the notation of the PostgreSQL type `inet`. */
  readonly network?: AuditNetwork | undefined;
  readonly requestId?: string | undefined;
  readonly from?: Date | undefined;
  /** The end of the period: only events before this time match. */
  readonly to?: Date | undefined;
}

/** An IP address, or all addresses of a network from the first to the last. */
export interface AuditNetwork {
  readonly text: string;
  readonly isOneAddress: boolean;
  /** The length of an IP address in bits: 32 for IPv4, 128 for IPv6. */
  readonly bits: number;
}

/** The parts of an event that describe it to a reader. */
export interface EventFacts {
  readonly type: string;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  /**
   * The e-mail addresses of actor and subject, and the name of the client in the details, as they
   * were at the time of the event.
   */
  readonly actorEmail: string | null;
  readonly subjectEmail: string | null;
  readonly clientName: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** An event in the audit log. */
export interface AuditRow extends EventFacts {
  readonly id: string;
  readonly class: string;
  readonly requestId: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly createdAt: Date;
  readonly place: AuditPlace;
}

/**
 * The page of the log that a search reads: at most `limit` events after a position, which are the
 * next older ones.
 */
export interface AuditRange {
  readonly after: AuditPlace | undefined;
  readonly limit: number;
}

/** The events that a search found, the newest first. */
export interface AuditFound {
  readonly rows: readonly AuditRow[];
  /**
   * The last event that the search looked at, if it stopped before the end of the log. The next
   * search continues after this event.
   */
  readonly end: AuditPlace | undefined;
}
