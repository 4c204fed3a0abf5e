import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AUDIT_CLASS, AUDIT_TYPES } from '#domain/audit/audit-event.js';
import { DELAY_PAGES, feedDelay } from '#domain/audit/feed/audit-feed.repository.js';
import { FeedWatch, LOOKING } from '#domain/audit/feed/feed-watch.js';
import { systemClock } from '#platform/clock/clock.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { ocsfFaults } from '../../support/ocsf.js';
import { rows } from '../../support/rows.js';

/** The number of connections that write at once, and of the events of each. */
const WRITERS = 64;
const OF_ONE = 5;

interface Feed {
  readonly events: readonly {
    readonly id: string;
    readonly type: string;
    readonly cursor: string;
  }[];
  readonly next: string;
}

let app: TestApp;
let ada: Client;
let org: string;

beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@feed.example'));
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    "SELECT org_id FROM users WHERE email = 'ada@feed.example'",
  );
  org = row?.org_id ?? '';
});
afterAll(() => app.close());

const ask = (query: string): Promise<Answer> =>
  ada.get(`/api/v1/org/audit-events?order=asc${query}`, { address: newAddress() });

async function feed(query: string): Promise<Feed> {
  const { status, json } = await ask(query);
  expect(status).toBe(200);
  return json as never;
}

/**
 * Reads the feed to its present end in pages of 7 events. Open transactions of other tests in the
 * same PostgreSQL delay the feed. If `isPatient`, it waits for them first.
 */
async function drain(from = '', isPatient = true): Promise<{ ids: string[]; next: string }> {
  if (isPatient) {
    await vi.waitUntil(async () => (await feedDelay(app.dataSource.manager)) === 0, {
      timeout: 90_000,
    });
  }
  const ids: string[] = [];
  for (let next = from; ;) {
    const page = await feed(`&limit=7${next === '' ? '' : `&after=${next}`}`);
    ids.push(...page.events.map(({ id }) => id));
    next = page.next;
    if (page.events.length === 0) return { ids, next };
  }
}

const INSERT = `INSERT INTO audit_events (id, type, class, org_id, created_at)
  VALUES ($1, 'logout', 'auth', $2, coalesce($3, clock_timestamp()))`;

async function write(id = randomUUID(), at: string | null = null): Promise<string> {
  await app.dataSource.query(INSERT, [id, org, at]);
  return id;
}

/** Ends the epoch with the same SQL as the confirmation of another server. */
function endEpoch(): Promise<unknown> {
  return app.dataSource.transaction(async (tx) => {
    await tx.query("SELECT set_config('svc.audit_epoch', 'ends', true)");
    await tx.query(
      "UPDATE database_identity SET confirmed_at = confirmed_at + interval '1 microsecond'",
    );
  });
}

describe('the feed of the audit log', () => {
  it('has every event once, and goes on where it stopped', async () => {
    const { ids, next } = await drain();
    const all = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM audit_events WHERE org_id = $1 ORDER BY epoch, xid, id',
      [org],
    );
    expect(ids).toEqual(all.map(({ id }) => id));
    const id = await write();
    expect((await drain(next)).ids).toEqual([id]);
  });

  it('shows no event before an earlier transaction ends, and then both in order', async () => {
    const { next } = await drain();
    const open = app.dataSource.createQueryRunner();
    await open.startTransaction();
    const early = randomUUID();
    try {
      await open.query(INSERT, [early, org, null]);
      const late = await write();
      expect(await feed(`&after=${next}`)).toMatchObject({ events: [], next });
      await open.commitTransaction();
      expect((await drain(next)).ids).toEqual([early, late]);
    } finally {
      await open.release();
    }
  });

  it(`delivers every event of ${WRITERS} concurrent writers once, in one order`, async () => {
    let { next } = await drain();
    const seen: string[] = [];
    const written: string[] = [];
    const writer = async () => {
      for (let n = 0; n < OF_ONE; n += 1) {
        await app.dataSource.transaction(async (tx) => {
          const id = randomUUID();
          await tx.query(INSERT, [id, org, null]);
          await setImmediate();
          await tx.query(INSERT, [randomUUID(), null, null]);
          written.push(id);
        });
      }
    };
    const state = { isWriting: true };
    const writing = Promise.all(Array.from({ length: WRITERS }, writer)).finally(() => {
      state.isWriting = false;
    });
    while (state.isWriting) {
      const page = await drain(next, false);
      seen.push(...page.ids);
      ({ next } = page);
    }
    await writing;
    seen.push(...(await drain(next)).ids);
    expect(seen.toSorted()).toEqual(written.toSorted());
  });

  it('has a cursor in each line of an export, so that a cut export goes on', async () => {
    await drain();
    const text = (await ask('&format=ndjson')).text.trim();
    const lines = text.split('\n').map((line) => JSON.parse(line) as Feed['events'][number]);
    expect(lines.map(({ id }) => id)).toEqual((await drain()).ids);
    const half = Math.floor(lines.length / 2);
    const rest = (await ask(`&format=ndjson&after=${lines[half - 1]?.cursor}`)).text.trim();
    expect(rest).toBe(text.split('\n').slice(half).join('\n'));
  });

  it('has documents of OCSF that the public schema accepts, for every type of event', async () => {
    const { next } = await drain();
    await app.dataSource.query(
      `INSERT INTO audit_events (id, type, class, org_id, ip, user_agent, request_id, subject_id, actor_email)
       SELECT gen_random_uuid(), t, c, $2, CASE WHEN n % 2 = 0 THEN '192.0.2.1'::inet END, CASE WHEN n % 2 = 0 THEN 'agent' END,
              CASE WHEN n % 3 = 0 THEN 'r' END, CASE WHEN n % 3 = 1 THEN $3::uuid END, CASE WHEN n % 5 = 1 THEN 'ada@feed.example' END
       FROM jsonb_each_text($1) AS e (t, c) CROSS JOIN generate_series(1, 6) n`,
      [JSON.stringify(AUDIT_CLASS), org, randomUUID()],
    );
    await drain();
    const text = (await ask(`&format=ocsf&after=${next}`)).text.trim();
    const documents = text.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(documents).toHaveLength(6 * AUDIT_TYPES.length);
    expect(documents.flatMap((document) => ocsfFaults(document))).toEqual([]);
    expect(ocsfFaults({ ...documents[0], metadata: { version: 1 }, other: 'x' })).toHaveLength(3);
  });

  it('shows nothing of another organization', async () => {
    const { client } = await app.enrolled('bob@other-feed.example');
    const mine = new Set((await drain()).ids);
    const { json } = await client.get('/api/v1/org/audit-events?order=asc&limit=1000', {
      address: newAddress(),
    });
    const { events } = json as unknown as Feed;
    expect(events.length).toBeGreaterThan(0);
    expect(events.filter(({ id }) => mine.has(id))).toEqual([]);
  });

  it('begins at its present end for a reader who wants later events alone', async () => {
    await write();
    await drain();
    const latest = await feed('&after=latest');
    expect(latest.events).toEqual([]);
    const id = await write();
    expect((await drain(latest.next)).ids).toEqual([id]);
  });

  it('shows the events of one type or kind, and goes on behind the others', async () => {
    const { next } = await drain();
    const id = await write();
    const { next: end } = await drain(next);
    expect(await feed(`&after=${next}&type=keys`)).toMatchObject({ events: [], next: end });
    expect(await feed(`&after=${next}&type=logins`)).toMatchObject({ events: [{ id }], next: end });
  });

  it.each(['ndjson', 'ocsf'])('names in %s without a line where to go on', async (format) => {
    const { next } = await drain();
    await write();
    const { next: end } = await drain(next);
    const { text, headers } = await ask(`&after=${next}&format=${format}&type=keys`);
    const [, address] =
      /^<(\/api\/v1\/org\/audit-events\?.*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
    const query = new URLSearchParams(address?.split('?')[1]);
    expect(text).toBe('');
    expect(Object.fromEntries(query)).toEqual({ order: 'asc', after: end, format, type: 'keys' });
    const id = await write();
    await drain(end);
    query.set('type', 'logins');
    const later = await ask(`&${query.toString()}`.replace('&order=asc', ''));
    expect(later.text.trim().split('\n')).toHaveLength(1);
    expect(later.text).toContain(id);
    expect(later.headers.has('link')).toBe(false);
  });

  it.each([
    '&type=nothing',
    '&person=ada@feed.example',
    '&format=csv',
    '&after=x',
    '&user=6f1c1e0a-0000-4000-8000-000000000000',
  ])('refuses %s', async (query) => {
    expect((await ask(query)).status).toBe(400);
  });

  it('refuses a cursor of the other order', async () => {
    const { json } = await ada.get('/api/v1/org/audit-events?limit=1', { address: newAddress() });
    expect((await ask(`&after=${json.next as string}`)).status).toBe(400);
    const { next } = await drain();
    const answer = await ada.get(`/api/v1/org/audit-events?after=${next}`, {
      address: newAddress(),
    });
    expect(answer.status).toBe(400);
  });
});

describe('a reader whose place the database lost', () => {
  it('is told where to go on, and then gets every later event', async () => {
    await write();
    const kept = await drain();
    const lost = await write();
    const { next } = await drain();
    await app.dataSource.query('DELETE FROM audit_events WHERE id = $1', [lost]);
    await endEpoch();
    const later = await write();
    const answer = await ask(`&after=${next}`);
    expect(answer).toMatchObject({ status: 409, json: { code: 'feed_restarted' } });
    expect((await drain(answer.json.cursor as string)).ids).toEqual([later]);
    expect((await drain(kept.next)).ids).toEqual([later]);
  });

  it('is told so for a transaction that this server has not begun', async () => {
    const id = await write();
    const [place] = await rows<{ epoch: string }>(
      app.dataSource,
      'SELECT epoch::text AS epoch FROM audit_events WHERE id = $1',
      [id],
    );
    const beyond = Buffer.from(`${place?.epoch} 999999999999 ${id}`).toString('base64url');
    const answer = await ask(`&after=${beyond}`);
    expect(answer.status).toBe(409);
    expect((await drain(answer.json.cursor as string)).ids).toContain(id);
  });
});

describe('a dump that was restored into a new cluster', () => {
  it('has events of transactions that the cluster has not begun: all appear, then the new ones', async () => {
    const before = await drain();
    const old = [randomUUID(), randomUUID()].toSorted();
    await app.dataSource.query(
      `INSERT INTO audit_events (id, type, class, org_id, xid, epoch)
       SELECT unnest($1::uuid[]), 'logout', 'auth', $2, '999999999999', (SELECT epoch FROM database_identity)`,
      [old, org],
    );
    // The confirmation finds such events itself and begins a new epoch, even if the server shows no
    // identity.
    await app.dataSource.query(
      "UPDATE database_identity SET confirmed_at = confirmed_at + interval '1 microsecond'",
    );
    const later = await write();
    expect((await drain(before.next)).ids).toEqual([...old, later]);
  });
});

/** Returns the number of warnings that one check of the feed's delay logs, or several of them. */
async function warnings(looks = 1): Promise<number> {
  const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const watch = new FeedWatch(app.dataSource, systemClock);
  try {
    for (let n = 0; n < looks; n += 1) await watch.look();
    return warn.mock.calls.filter(([facts]) => 'oldestSeconds' in Object(facts)).length;
  } finally {
    warn.mockRestore();
  }
}

describe('a transaction that stays open', () => {
  it('is announced in the log of security, and delays the events without losing one', async () => {
    const { next } = await drain();
    const open = app.dataSource.createQueryRunner();
    await open.startTransaction();
    try {
      await open.query(INSERT, [randomUUID(), null, null]);
      const id = await write(randomUUID(), '2026-01-01T00:00:00Z');
      expect(await warnings()).toBe(1);
      await open.rollbackTransaction();
      expect((await drain(next)).ids).toEqual([id]);
      await drain(next);
      expect(await warnings()).toBe(0);
    } finally {
      await open.release();
    }
  });

  it('is announced among more organizations than one statement can look at', async () => {
    const { organizations } = DELAY_PAGES;
    const { longest } = LOOKING;
    const open = app.dataSource.createQueryRunner();
    await open.startTransaction();
    await rows(
      app.dataSource,
      `CREATE OR REPLACE FUNCTION audited_organizations() RETURNS SETOF uuid LANGUAGE plpgsql AS
       $$ BEGIN RAISE query_canceled; END $$`,
    );
    try {
      await open.query(INSERT, [randomUUID(), null, null]);
      for (const first of ['000', '001', '002']) {
        const of = `${first}${randomUUID().slice(3)}`;
        await rows(
          app.dataSource,
          `INSERT INTO audit_events (id, type, class, org_id) VALUES ($1, 'logout', 'auth', $2)`,
          [randomUUID(), of],
        );
      }
      await write(randomUUID(), '2026-01-01T00:00:00Z');
      expect(await feedDelay(app.dataSource.manager)).toBeGreaterThan(60_000);
      expect(await warnings()).toBe(1);

      DELAY_PAGES.organizations = 1;
      expect(await feedDelay(app.dataSource.manager)).toBeGreaterThan(60_000);
      expect(await warnings()).toBe(1);
      // Each look is at one organization, and those of the new events come first.
      LOOKING.longest = 0;
      expect(await warnings(3)).toBe(0);
      expect(await warnings(30)).toBe(1);
    } finally {
      Object.assign(DELAY_PAGES, { organizations });
      Object.assign(LOOKING, { longest });
      await open.rollbackTransaction();
      await open.release();
    }
  });
});
