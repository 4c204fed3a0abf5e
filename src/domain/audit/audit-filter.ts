/** A place in the order of audit events: an event, by its time to the microsecond and its id. */
export interface AuditPlace {
  /** The time of the event, as RFC 3339 in UTC. */
  readonly at: string;
  readonly id: string;
}

/** The users of a filter: by their ids, and by the addresses that they had. */
export interface AuditPeople {
  readonly ids: readonly string[];
  readonly addresses: readonly string[];
}

/** The security keys of a filter: one key, and every key of some models. */
export interface AuditKeys {
  readonly id?: string | undefined;
  readonly aaguids: readonly string[];
}

/** A filter of events: an event matches every field that is set. */
export interface AuditFilter {
  readonly types?: readonly string[] | undefined;
  /**
   * An entry matches an event by its actor, its subject, or an address in the details. The address
   * is needed because events are kept longer than users.
   */
  readonly people?: readonly AuditPeople[] | undefined;
  /** The id of a client or application, or its name at the time. */
  readonly client?: string | undefined;
  readonly keys?: AuditKeys | undefined;
  /** The name or the id of a target, the ARN of a role, or the owner of an installation. */
  readonly target?: string | undefined;
  /** An address or a network, as PostgreSQL reads `inet`. */
  readonly network?: AuditNetwork | undefined;
  readonly requestId?: string | undefined;
  readonly from?: Date | undefined;
  /** The end of the time: the filter matches only events before it. */
  readonly to?: Date | undefined;
}

/** A network address, or all addresses from the first to the last of a network. */
export interface AuditNetwork {
  readonly text: string;
  readonly isOneAddress: boolean;
  /** The length of an address in bits: 32 for IPv4, 128 for IPv6. */
  readonly bits: number;
}

/** The facts that describe an event. */
export interface EventFacts {
  readonly type: string;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  /**
   * The addresses of both users, and the name of the client in the details, at the time of the
   * event.
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

/** The part of the log that a search reads. */
export interface AuditRange {
  readonly after: AuditPlace | undefined;
  readonly limit: number;
}

/** The events that a search found, the newest first. */
export interface AuditFound {
  readonly rows: readonly AuditRow[];
  /**
   * The last place that the search reached, if it stopped before the end. The next search continues
   * after it.
   */
  readonly end: AuditPlace | undefined;
}
