import type { AuditFilter, AuditKeys, AuditPeople } from '#domain/audit/audit-filter.js';
import { typesOfFilter, TYPE_FILTERS, type TypeFilter } from '#domain/audit/audit-kinds.js';
import { aaguidsOfModels } from '#domain/keys/authenticators/authenticator-models.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { isSingleLine, isUuid } from '#platform/text/single-line.js';
import { parseNetwork } from './network.js';
import { daysOf, endOfDay, parseDay, PERIODS, type Period } from './periods.js';

/**
 * The fields of a saved search of the audit log, as texts of a form. An empty field filters
 * nothing. `user` is an id and `email` an e-mail address; `person` is either of these or the
 * beginning of a name. An event must match every field that is set.
 */
export const QUESTION_FIELDS = [
  'type',
  'person',
  'user',
  'email',
  'client',
  'target',
  'key',
  'ip',
  'request',
  'from',
  'to',
] as const;

/** The name of a field by which a search of the audit log filters events. */
export type QuestionField = (typeof QUESTION_FIELDS)[number];

/** A search of the audit log: the text of each field. A missing field filters nothing. */
export type AuditQuestion = Readonly<Partial<Record<QuestionField, string | undefined>>>;

/**
 * A search as it is stored. `period` names days relative to today, such as the last week, in place
 * of `from` and `to`.
 */
export type StoredQuestion = AuditQuestion & { readonly period?: Period | undefined };

/** The most characters of the text in a field. */
export const LONGEST_FIELD = 254;

/**
 * Returns the reason why a text is not valid in a field of a search; undefined if the text is
 * valid.
 */
export function problemOf(field: QuestionField, text: string): string | undefined {
  if (text.length > LONGEST_FIELD || !isSingleLine(text)) return 'must be one line, and shorter';
  if (field === 'type' && !isTypeFilter(text)) return 'must be the type of an event';
  if (field === 'user' && !isUuid(text)) return 'must be the id of a user';
  if (field === 'email' && !parseEmailAddress(text)) return 'must be an e-mail address';
  if (field === 'ip' && !parseNetwork(text)) {
    return 'must be an address or a network, such as 10.1.0.0/16';
  }
  if ((field === 'from' || field === 'to') && !parseDay(text)) {
    return 'must be a day, such as 2026-11-17';
  }
  return undefined;
}

/** Returns true if a text is an event type, or the name of a kind or group of event types. */
export function isTypeFilter(text: string): text is TypeFilter {
  return (TYPE_FILTERS as readonly string[]).includes(text);
}

/** Returns true if a text is the name of a period relative to today, such as `last_week`. */
export function isPeriod(text: string): text is Period {
  return Object.hasOwn(PERIODS, text);
}

/**
 * Replaces the relative days of a stored search by the dates `from` and `to`, counted from today.
 */
export function questionAt({ period, ...question }: StoredQuestion, now: Date): AuditQuestion {
  return period === undefined ? question : { ...question, ...daysOf(period, now) };
}

/** Encodes a search as the query component of a URL, so that a link can open the search. */
export function queryOf(question: AuditQuestion): string {
  const pairs = QUESTION_FIELDS.map((field): [string, string] => [field, question[field] ?? '']);
  return new URLSearchParams(pairs.filter(([, text]) => text !== '')).toString();
}

/** A filter of the audit log whose users are texts that must still be looked up in the database. */
export interface AuditSearch extends Omit<AuditFilter, 'people'> {
  /**
   * The users of the filter. Each element is the id or the e-mail address of a user, or the
   * beginning of a name or an e-mail address.
   */
  readonly people: readonly string[];
}

/** Returns the filter of a search. The caller has checked each field with {@link problemOf}. */
export function searchOf(question: AuditQuestion): AuditSearch {
  const { type, person, user, email, client, target, key, ip, request, from, to } = question;
  const lastDay = to === undefined ? undefined : parseDay(to);
  return {
    types: type !== undefined && isTypeFilter(type) ? typesOfFilter(type) : undefined,
    people: [user, email, person].filter((text) => text !== undefined),
    client,
    target,
    keys: key === undefined ? undefined : keysOf(key),
    network: ip === undefined ? undefined : parseNetwork(ip),
    requestId: request,
    from: from === undefined ? undefined : parseDay(from),
    to: lastDay && endOfDay(lastDay),
  };
}

/**
 * Returns the security keys that a text names. A UUID is the id of a key or of a model (AAGUID);
 * any other text is a part of the names of models.
 */
export function keysOf(text: string): AuditKeys {
  const id = text.toLowerCase();
  return isUuid(text) ? { id, aaguids: [id] } : { aaguids: aaguidsOfModels(text) };
}

/**
 * Returns the user that a text names by an id or an e-mail address. Returns undefined for a part of
 * a name, which must be looked up.
 */
export function knownPerson(text: string): AuditPeople | undefined {
  if (isUuid(text)) return { ids: [text.toLowerCase()], addresses: [] };
  const address = parseEmailAddress(text);
  return address === undefined ? undefined : { ids: [], addresses: [address] };
}
