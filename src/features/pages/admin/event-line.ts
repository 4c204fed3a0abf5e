import type { AuditRow } from '#domain/audit/audit-filter.js';
import { deviceOfEvent } from '#platform/text/device-name.js';
import type { EventLine } from '../shell/event-days.js';
import { moment } from '../shell/moment.js';
import { personOf, sentenceOf, shortened, thingOf } from './event-words.js';

/** The largest number of characters of a name in the facts of an event. */
export const LONGEST_NAME = 100;

/**
 * Returns an audit event as a line of a list: its sentence, its time, and facts such as the IP
 * address.
 */
export function lineOf(row: AuditRow) {
  return {
    type: row.type,
    href: `/admin/audit/${row.id}`,
    at: moment(row.createdAt),
    sentence: sentenceOf(row),
    facts: [
      ['Person', personOf(row)],
      ['Application or credential', shortened(thingOf(row), LONGEST_NAME)],
      ['From', row.ip],
      ['By', deviceOfEvent(row.userAgent)?.name],
      ['Request', row.requestId],
    ],
  } as const satisfies EventLine;
}
