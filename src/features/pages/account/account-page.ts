import { z } from 'zod';
import { activityText } from '#domain/account/activity-text.js';
import { originFor } from '#domain/account/account-export.js';
import { readCursor, writeCursor } from '#domain/admin/audit-search/audit-cursor.js';
import type { EventRange, OwnEvent } from '#domain/account/own-events.repository.js';
import { deviceOfEvent } from '#platform/text/device-name.js';
import type { EventLine } from '../shell/event-days.js';
import { moment } from '../shell/moment.js';

/**
 * The query of a page with a list. `after` is the cursor after which the page begins; without it,
 * the page begins with the newest item.
 */
export const PAGE_QUERY = z.object({ after: z.string().max(128).optional() });

/** The largest number of items of a list on one page. */
const PAGE_SIZE = 50;

/**
 * Returns the range of a list that a page shows. If the cursor `after` in the URL is malformed, the
 * range begins with the newest item.
 */
export function rangeOf({ after }: z.output<typeof PAGE_QUERY>): EventRange {
  return { after: after === undefined ? undefined : readCursor(after), limit: PAGE_SIZE };
}

/**
 * Returns the URLs of the first page and of the next page of a list. `newest` is undefined on the
 * first page, and `older` on the last one.
 */
export function pagingOf(path: string, range: EventRange, next: EventRange['after'] | null) {
  return {
    newest: range.after ? path : undefined,
    older: next ? `${path}?after=${writeCursor(next)}` : undefined,
  };
}

/**
 * Returns an event of the user's account as a line of a list: its text, and facts such as the IP
 * address.
 */
export function eventOf(event: OwnEvent, userId: string): EventLine {
  const { ip, userAgent } = originFor(event, userId);
  const device = deviceOfEvent(userAgent);
  return {
    type: event.type,
    at: moment(event.createdAt),
    sentence: [{ text: activityText(event, userId), isName: true }],
    facts: [
      ['From', ip],
      ['By', device?.name],
      ['Device in full', device?.whole],
      ['Reference', event.requestId],
    ],
  };
}
