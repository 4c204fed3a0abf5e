import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { vi } from 'vitest';
import { newAddress, type Answer, type Client } from './client.js';
import { rows } from './rows.js';

/**
 * The path of the feed of audit events. The oldest event comes first, so that a program can copy
 * the log page by page.
 */
export const FEED = '/api/v1/org/audit-events?order=asc';

const SOON = { timeout: 90_000, interval: 10 };

/** An event in an answer of the feed. */
export interface FeedEvent {
  readonly id: string;
  readonly cursor: string;
}

/**
 * A database connection by which a test writes rows. It may be a pool, a single connection or a
 * transaction.
 */
interface Writer {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * Writes a `logout` event of an organization, and returns its id. The column `epoch` gets its
 * default, as in earlier versions of the service.
 */
export async function writeEvent(writer: Writer, orgId: string): Promise<string> {
  const id = randomUUID();
  await writer.query(
    "INSERT INTO audit_events (id, type, class, org_id) VALUES ($1, 'logout', 'auth', $2)",
    [id, orgId],
  );
  return id;
}

/** Returns the id of a user's organization; an empty text if the user has none. */
export async function organizationOf(dataSource: DataSource, email: string): Promise<string> {
  const [row] = await rows<{ org_id: string }>(
    dataSource,
    'SELECT org_id FROM users WHERE email = $1',
    [email],
  );
  return row?.org_id ?? '';
}

/** Returns the ids of those events that exist, in the order of the feed. */
export async function inOrder(dataSource: DataSource, ids: readonly string[]): Promise<string[]> {
  const found = await rows<{ id: string }>(
    dataSource,
    'SELECT id FROM audit_events WHERE id = ANY ($1) ORDER BY epoch, xid, id',
    [ids],
  );
  return found.map(({ id }) => id);
}

/**
 * Copies the feed page by page, as a program of an organization does. Each request has the cursor
 * of the last page.
 */
export class FeedReader {
  /** The ids of the events that were read, in the order in which they came. */
  readonly ids: string[] = [];

  /**
   * @param cursor the cursor after which it reads; by default it begins with the first event
   * @param limit the largest number of events on a page
   */
  constructor(
    private readonly client: Client,
    public cursor = '',
    private readonly limit = 100,
  ) {}

  /** Returns another program that goes on after the same cursor. */
  copy(limit = this.limit): FeedReader {
    return new FeedReader(this.client, this.cursor, limit);
  }

  ask(): Promise<Answer> {
    const after = this.cursor === '' ? '' : `&after=${this.cursor}`;
    return this.client.get(`${FEED}&limit=${this.limit}${after}`, { address: newAddress() });
  }

  /** Reads one page, and returns the ids of its events. */
  async page(): Promise<readonly string[]> {
    const { status, text, json } = await this.ask();
    if (status !== 200) throw new Error(`the feed answered ${status}: ${text}`);
    const { events, next } = json as { events: readonly FeedEvent[]; next: string };
    const ids = events.map(({ id }) => id);
    this.ids.push(...ids);
    this.cursor = next;
    return ids;
  }

  /** Reads pages until a page is empty. */
  async drain(): Promise<void> {
    while ((await this.page()).length > 0);
  }

  /**
   * Reads pages until it has at least `events` events. An empty page does not end it, because
   * transactions of other tests in the same PostgreSQL delay the feed.
   */
  async until(events: number): Promise<void> {
    await vi.waitUntil(async () => {
      await this.drain();
      return this.ids.length >= events;
    }, SOON);
  }

  /**
   * Reads all events that are committed so far and forgets them, so that a test sees only later
   * ones. It knows the end by an event of its own.
   */
  async skip(writer: Writer, orgId: string): Promise<void> {
    const last = await writeEvent(writer, orgId);
    await vi.waitUntil(async () => {
      await this.drain();
      return this.ids.includes(last);
    }, SOON);
    this.ids.length = 0;
  }
}
