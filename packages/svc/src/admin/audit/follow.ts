import { sleep } from '../../program/clock.js';
import { CliFailure, STATUS } from '../../program/failure.js';
import { ServerRefusal } from '../../server/server-client.js';
import { withQuery, type AdminClient } from '../acts/admin-client.js';
import { eventLine, type PrintedEvent, type EventPage } from './event-lines.js';

/** The choice of the events that `svc admin audit --follow` prints. */
export interface Followed {
  readonly type: string | undefined;
  /**
   * The time of the first event to print; undefined to print only events that happen from now on.
   */
  readonly from: string | undefined;
  /** The cursor of the API at which an earlier run stopped; undefined for a first run. */
  readonly after: string | undefined;
}

/**
 * The pauses in milliseconds: `next` before the server is asked again for new events, and `failure`
 * after a failed request.
 */
const PAUSE = { next: 2_000, failure: 5_000 } as const;

/** The exit status after Ctrl-C: 128 and the number of the signal. */
const INTERRUPTED = 130;

/** The most events on a page of the API. */
const PAGE = '1000';

/**
 * The number of past events after which no further page is read. All of them are held in memory,
 * because the API lists the newest first, and they are printed in the order of their times.
 */
const MOST_EARLIER = 10_000;

/**
 * Prints the events of the log as they happen, each once, until the user presses Ctrl-C. It waits
 * as long as the server says, and goes on after a failure of the server or the network. If the
 * token has ended, the admin can touch the security key.
 *
 * @throws CliFailure if the server refuses, with the command that continues after the last event
 */
export async function follow(
  admin: AdminClient,
  events: string,
  followed: Followed,
): Promise<void> {
  process.once('SIGINT', () => process.exit(INTERRUPTED));
  const { type, from } = followed;
  const feed = (after: string) =>
    admin.json<EventPage>('GET', withQuery(events, { order: 'asc', type, after, limit: PAGE }));
  const start = followed.after ?? (await feed('latest')).next ?? '';
  const printed =
    from === undefined ? new Set<string>() : await printEarlier(admin, events, followed);
  await printLater(admin, feed, start, printed);
}

/**
 * Prints the events from a time until now, and returns their ids. The feed, which is read next,
 * repeats the newest of these events, and by the ids the command does not print them twice.
 */
async function printEarlier(
  admin: AdminClient,
  events: string,
  { type, from, after: given }: Followed,
): Promise<Set<string>> {
  if (given !== undefined) return new Set();
  const found: PrintedEvent[] = [];
  let after: string | undefined;
  do {
    const query = { type, from, after, limit: PAGE };
    const page: EventPage = await admin.json('GET', withQuery(events, query));
    found.push(...page.events);
    after = page.next ?? undefined;
  } while (after !== undefined && found.length < MOST_EARLIER);
  if (after !== undefined) {
    admin.terminal.warn(
      `svc: There are more than ${found.length} events; the oldest are left out.`,
    );
  }
  found.toReversed().forEach((event) => print(admin, event));
  return new Set(found.map(({ id }) => id));
}

/** Prints the new events, until the program that reads the output has ended. */
async function printLater(
  admin: AdminClient,
  feed: (after: string) => Promise<EventPage>,
  start: string,
  printed: ReadonlySet<string>,
): Promise<void> {
  for (let cursor = start; ;) {
    const { events, next } = await survived(admin, feed, cursor);
    events.filter(({ id }) => !printed.has(id)).forEach((event) => print(admin, event));
    if (admin.terminal.isReaderGone) return;
    if (next === cursor || next === null) await sleep(PAUSE.next);
    cursor = next ?? cursor;
  }
}

/**
 * Asks for a page of events. After a failure that may pass it waits, and returns an empty page, so
 * that the caller asks again.
 */
async function survived(
  admin: AdminClient,
  feed: (after: string) => Promise<EventPage>,
  after: string,
): Promise<EventPage> {
  try {
    return await feed(after);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const problem = error instanceof ServerRefusal ? error.problem : {};
    const { code, cursor } = problem;
    if (code === 'feed_restarted' && typeof cursor === 'string') {
      admin.terminal.warn('svc: The log was restored or has lost events. It goes on from there.');
      return { events: [], next: cursor };
    }
    const isBusy = error instanceof ServerRefusal && error.httpStatus === 429;
    if (error.status !== STATUS.failed && !isBusy) throw withCursor(error, after);
    admin.terminal.warn(`svc: ${error.message} svc tries again in ${PAUSE.failure / 1000} s.`);
    await sleep(PAUSE.failure);
    return { events: [], next: after };
  }
}

/** Adds to a failure the command that continues at the same event later. */
function withCursor({ message, whatToDo, status }: CliFailure, after: string): CliFailure {
  const goOn = `Then go on with: svc admin audit --follow --after ${after}`;
  return new CliFailure(message, `${whatToDo}\n${goOn}`, status);
}

function print({ terminal }: AdminClient, event: PrintedEvent): void {
  if (terminal.isJson) terminal.answer(JSON.stringify(event));
  else terminal.print(eventLine(event));
}
