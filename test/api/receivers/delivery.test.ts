import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { endOfFeed } from '../../../src/domain/audit/feed/audit-feed.repository.js';
import {
  listDueReceivers,
  passBy,
  releaseEvents,
  takeReceivers,
} from '../../../src/domain/oauth/event-receivers/receiver-queue.repository.js';
import { REGISTERED_LIMITS } from '../../../src/domain/oauth/notice-sending/fair-turns.js';
import {
  NoticeSender,
  type Lane,
  type NoticeWork,
  type TakenRow,
} from '../../../src/domain/oauth/notice-sending/notice-sender.js';
import { Random } from '../../../src/platform/clock/random.js';
import { noticeFigures } from '../../../src/domain/oauth/notice-figures/notice-figures.repository.js';
import { WATCHED_QUEUES } from '../../../src/domain/oauth/notice-watch/notice-queues.js';
import { NoticeWatch } from '../../../src/domain/oauth/notice-watch/notice-watch.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import {
  madeReceiver,
  receiverApi,
  retryNow,
  startEventServer,
  untilCreation,
  wakeReceivers,
  webhookIds,
  writeEvents,
  type CreatedReceiver,
  type EventServer,
} from '../../support/event-receivers.js';
import { organizationOf } from '../../support/feed-reader.js';
import { MovableClock } from '../../support/movable-clock.js';
import { readOtlp } from '../../support/otlp-reader.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';

const ADA = 'ada@deliveries.example';
const SOON = { timeout: 90_000, interval: 20 };
const HOUR = 3_600_000;

let app: TestApp;
let ada: Client;
let orgId: string;
const clock = new MovableClock();
const servers: EventServer[] = [];
beforeAll(async () => {
  app = await startTestApp({ clock, environment: { SVC_CLEANUP_INTERVAL: '0' } });
  ({ client: ada } = await app.enrolled(ADA));
  orgId = await organizationOf(app.dataSource, ADA);
});
afterAll(() => app.close());
afterEach(async () => {
  await rows(app.dataSource, 'DELETE FROM event_receivers');
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** Sets the last touch of every session to the present time of the test clock. */
const touch = () => rows(app.dataSource, 'UPDATE sessions SET auth_time = $1', [clock.now()]);

async function ground(more: object = {}) {
  await touch();
  const server = await startEventServer();
  servers.push(server);
  const receiver = await madeReceiver(ada, server.uri, more);
  await untilCreation(server);
  return { server, receiver };
}

/**
 * Lets time pass: moves the clock forward, and the times in the database, which are by its own
 * clock, back. Then it wakes the sender.
 */
async function advance(milliseconds: number): Promise<void> {
  clock.advance(milliseconds);
  const past = (name: string) => `${name} = ${name} - make_interval(secs => $1)`;
  const seconds = [milliseconds / 1000];
  const times = ['next_attempt_at', 'give_up_at', 'failing_since'].map(past).join(', ');
  await rows(app.dataSource, `UPDATE event_receivers SET ${times}`, seconds);
  const ofLetters = ['next_attempt_at', 'give_up_at', 'dead_at'].map(past).join(', ');
  await rows(app.dataSource, `UPDATE undelivered_events SET ${ofLetters}`, seconds);
  wakeReceivers(app);
}

const resultOf = async ({ id }: CreatedReceiver) =>
  (
    await rows<{ last_result: string | null }>(
      app.dataSource,
      'SELECT last_result FROM event_receivers WHERE id = $1',
      [id],
    )
  )[0]?.last_result;
/**
 * Skips the pauses after failures until a server has got a request with one event and without
 * another one.
 */
async function untilTaken(
  server: EventServer,
  id: string,
  without = 'x'.repeat(99),
): Promise<void> {
  const isThere = async () => {
    await retryNow(app);
    return server.received.some(({ bytes }) => bytes.includes(id) && !bytes.includes(without));
  };
  await expect.poll(isThere, SOON).toBe(true);
}
/** Returns the failed tries of the receiver, or undefined while a request is under way. */
const triesOf = async () => {
  const [row] = await rows<{ tries: number }>(
    app.dataSource,
    'SELECT tries FROM event_receivers WHERE leased_until < now()',
  );
  return row?.tries;
};
const letters = () => count(app.dataSource, 'undelivered_events WHERE dead_at IS NOT NULL');

describe('an event that a receiver does not take', () => {
  it('for 24 hours is a dead letter, which an admin sees, repeats and drops; the later ones go on', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 503;
    const [first = '', second = ''] = await writeEvents(app, orgId, 2);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 503');
    await advance(25 * HOUR);
    await expect.poll(letters, SOON).toBe(1);
    server.answer = () => 200;
    await retryNow(app);
    await expect.poll(() => webhookIds(server), SOON).toContain(second);

    await touch();
    const { json } = await receiverApi(ada, 'GET', receiver);
    expect(json).toMatchObject({ failed: 1, dead_letters: [{ event_id: first, type: 'logout' }] });
    const [{ id }] = json.dead_letters as [{ id: string }];
    const page = await ada.get(`/admin/event-receivers/${receiver.id}`);
    expect(page.text).toContain(`data-dead-letter="${id}"`);
    expect(app.log.join('\n')).toContain('A receiver did not take events');
    const audited = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'notice_dead_lettered' AND details ->> 'receiver_id' = $1",
      [receiver.id],
    );
    expect(audited).toMatchObject([{ details: { notice: 'audit-webhook', events: 1 } }]);

    server.received.splice(0);
    expect((await receiverApi(ada, 'POST', receiver, `/dead-letters/${id}/repeat`)).status).toBe(
      204,
    );
    await expect.poll(() => webhookIds(server), SOON).toContain(first);
    await expect.poll(() => count(app.dataSource, 'undelivered_events'), SOON).toBe(0);
    expect((await receiverApi(ada, 'DELETE', receiver, `/dead-letters/${id}`)).status).toBe(404);
  });

  it('although it is repeated is a dead letter again, and delays no event of the log', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 500;
    const [first = ''] = await writeEvents(app, orgId, 1);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 500');
    await advance(25 * HOUR);
    await expect.poll(letters, SOON).toBe(1);
    server.answer = (_, { headers }) => (headers['webhook-id'] === first ? 500 : 200);
    await touch();
    const { json } = await receiverApi(ada, 'GET', receiver);
    const [{ id }] = json.dead_letters as [{ id: string }];
    await receiverApi(ada, 'POST', receiver, `/dead-letters/${id}/repeat`);
    await expect.poll(() => webhookIds(server).filter((one) => one === first).length, SOON).toBe(3);
    const [later = ''] = await writeEvents(app, orgId, 1);
    await retryNow(app);
    await expect.poll(() => webhookIds(server), SOON).toContain(later);
    await advance(25 * HOUR);
    await expect.poll(letters, SOON).toBe(1);
    await touch();
    const drops = await Promise.all(
      Array.from({ length: 20 }, () => receiverApi(ada, 'DELETE', receiver, `/dead-letters/${id}`)),
    );
    expect(drops.filter(({ status }) => status === 204)).toHaveLength(1);
  });

  it('is the end of a receiver that took nothing for five days: it is paused, and says so', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 401;
    await writeEvents(app, orgId, 2);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 401');
    await advance(6 * 24 * HOUR);
    const status = async () =>
      (await rows<{ status: string }>(app.dataSource, 'SELECT status FROM event_receivers'))[0];
    // First the one event is given up as a dead letter. That alone does not pause the receiver.
    await expect.poll(letters, SOON).toBe(1);
    expect(await status()).toEqual({ status: 'enabled' });
    await expect.poll(async () => (await triesOf()) ?? 0, SOON).toBeGreaterThan(0);
    await advance(25 * HOUR);
    await expect.poll(status, SOON).toEqual({ status: 'paused' });
    expect(app.log.join('\n')).toContain('took no event for 5 days and is paused now');
    await touch();
    const page = await ada.get(`/admin/event-receivers/${receiver.id}`);
    expect(page.text).toContain('data-paused');
  });
});

describe('the tries of a receiver', () => {
  const FAILED = `tries = 9, refusals = 4, give_up_at = now() - interval '1 hour', failing_since = now() - interval '6 days',
    next_attempt_at = now() + interval '1 hour'`;
  const STATE = 'SELECT tries, refusals, give_up_at, failing_since FROM event_receivers';
  const state = async () => (await rows(app.dataSource, STATE))[0];
  const RESET = { tries: 0, refusals: 0, give_up_at: null, failing_since: null };

  it('begin again with another address, another header, and once it goes on', async () => {
    const { server, receiver } = await ground();
    const paused = `status = 'paused'`;
    for (const [before, change] of [
      ['', { url: `${server.uri}?moved` }],
      ['', { header_name: 'X-Token', header_value: 'x' }],
      [`, ${paused}`, { status: 'enabled' }],
    ] as const) {
      // The receiver is reserved as if by another sender. So a request that is still under way
      // records no result, and no sender begins a new one during the test.
      const leased = `lease = lease + 1, leased_until = now() + interval '1 hour'`;
      await rows(app.dataSource, `UPDATE event_receivers SET ${leased}, ${FAILED}${before}`);
      expect((await receiverApi(ada, 'PATCH', receiver, '', change)).status).toBe(200);
      expect(await state()).toEqual(RESET);
    }
  });

  it('begin again after hours without a try, so that no event is given up untried', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 503;
    await writeEvents(app, orgId, 1);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 503');
    await rows(
      app.dataSource,
      `UPDATE event_receivers SET last_tried_at = now() - interval '3 hours', give_up_at = now() - interval '1 hour',
         last_result = NULL, next_attempt_at = '-infinity'`,
    );
    wakeReceivers(app);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 503');
    expect(await letters()).toBe(0);
  });

  it('do not count if the service cannot read the log', async () => {
    const { server } = await ground();
    app.log.splice(0);
    // PostgreSQL refuses a negative limit, so that the service cannot read the events
    await rows(app.dataSource, 'UPDATE event_receivers SET batch = -1');
    const ids = await writeEvents(app, orgId, 1);
    const isTold = () => app.log.some((line) => line.includes('The events of the receiver'));
    await expect.poll(isTold, SOON).toBe(true);
    await expect.poll(state, SOON).toEqual(RESET);
    await rows(app.dataSource, 'UPDATE event_receivers SET batch = 1');
    await retryNow(app);
    await expect.poll(() => webhookIds(server), SOON).toEqual(ids);
  });

  it('do not count if the service was late', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 'hang';
    await writeEvents(app, orgId, 1);
    await expect.poll(() => server.received.length, SOON).toBe(1);
    // One transaction, so that no sender of the service reserves the receiver meanwhile.
    await app.dataSource.transaction(async (tx) => {
      await tx.query(
        `UPDATE event_receivers SET tries = 0, refusals = 0, give_up_at = NULL, failing_since = NULL,
           leased_until = '-infinity', next_attempt_at = '-infinity'`,
      );
      const [taken] = await takeReceivers(tx, [receiver.id]);
      expect(taken?.tries).toBe(1);
      if (taken) await releaseEvents(tx, taken);
      expect(await tx.query(STATE)).toEqual([RESET]);
    });
  });
});

describe('receivers', () => {
  const due = (clientId: string) => ({ clientId, tenantId: clientId, since: 0, hasTaken: true });
  const unused = (): Promise<never> => Promise.reject(new Error('not used'));

  /** Returns a sender whose queue and requests are functions of the test. */
  function senderOf(
    lane: Partial<Lane<TakenRow>> & Pick<Lane<TakenRow>, 'due' | 'take'>,
    work: Partial<NoticeWork<TakenRow>> = {},
    fetch: () => Promise<Response> = unused,
  ) {
    const { dataSource, nest } = app;
    return new NoticeSender<TakenRow>(
      { dataSource, clock, random: nest.get(Random), outboundHttp: { fetch } },
      {
        channel: 'turns_of_a_test',
        name: 'The queue of a test',
        log: new Logger('test'),
        lanes: [{ limits: REGISTERED_LIMITS, ...lane }],
        taking: new Set([200]),
        tenantOf: () => '',
        request: unused,
        deliver: unused,
        postpone: unused,
        bury: unused,
        ...work,
      },
    );
  }

  it('that another sender was quicker to take do not end the turns of the others', async () => {
    const calls: string[] = [];
    let reads = 0;
    const over = Promise.withResolvers<void>();
    const sender = senderOf(
      {
        limits: { ...REGISTERED_LIMITS, most: 1 },
        due: () => Promise.resolve([due('a'), due('b')]),
        take: (_, counts) => {
          calls.push(...counts.keys());
          if (calls.length === 2) over.resolve();
          return Promise.resolve([]);
        },
      },
      { beforeRead: () => Promise.resolve(void (reads += 1)) },
    );
    sender.start();
    await over.promise;
    expect([calls.slice(0, 2), reads]).toEqual([['a', 'b'], 1]);
    await sender.stop();
  });

  it('are looked for one by one after a request, if no other one waits', async () => {
    const looks: string[] = [];
    let isBusy = false;
    const over = Promise.withResolvers<void>();
    const row = { id: '1', clientId: 'a', tries: 1, refusals: 0, left: HOUR };
    const sender = senderOf(
      {
        due: () => Promise.resolve(isBusy || looks.length > 0 ? [] : [due('a')]),
        dueOf: (_, ids) => {
          looks.push(...ids);
          over.resolve();
          return Promise.resolve([]);
        },
        take: () => {
          isBusy = true;
          return Promise.resolve([row]);
        },
      },
      {
        request: () => Promise.resolve({ uri: 'http://127.0.0.1:9/', body: '' }),
        deliver: () => {
          isBusy = false;
          return Promise.resolve();
        },
      },
      () => Promise.resolve(new Response()),
    );
    sender.start();
    await over.promise;
    expect(looks).toEqual(['a']);
    await sender.stop();
  });

  it('that hang, refuse or answer 100 MB delay no other one', async () => {
    const hanging = await ground();
    const flooding = await ground();
    const quick = await ground();
    hanging.server.answer = () => 'hang';
    flooding.server.answer = () => 'flood';
    const ids = await writeEvents(app, orgId, 10);
    await expect
      .poll(() => webhookIds(quick.server), { ...SOON, timeout: 4_900 })
      .toEqual(expect.arrayContaining(ids));
    expect(hanging.server.most()).toBe(1);
  });

  it('of which 20 senders ask at once are reserved by one alone', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 'hang';
    await writeEvents(app, orgId, 1);
    await expect.poll(() => server.received.length, SOON).toBe(1);
    // The sender of the application has a request to this receiver that hangs, and allows one at a
    // time. So when the lease ends here, only the calls below take the receiver.
    await rows(app.dataSource, "UPDATE event_receivers SET leased_until = '-infinity'");
    const { manager } = app.dataSource;
    expect(await listDueReceivers(manager)).toMatchObject([{ clientId: receiver.id }]);
    const taken = await Promise.all(
      Array.from({ length: 20 }, () => takeReceivers(manager, [receiver.id])),
    );
    expect(taken.flat()).toHaveLength(1);
    expect(await listDueReceivers(manager)).toEqual([]);
  });

  it('of a type that an admin adds while the log is read are not passed by', async () => {
    const { server, receiver } = await ground({ types: ['logout'] });
    server.answer = () => 'hang';
    const { manager } = app.dataSource;
    // The first request hangs, so that the sender of the application does not take the receiver
    // again.
    await writeEvents(app, orgId, 1);
    await expect.poll(() => server.received.length, SOON).toBe(1);
    await rows(app.dataSource, "UPDATE event_receivers SET leased_until = '-infinity'");
    const [taken] = await takeReceivers(manager, [receiver.id]);
    if (!taken) throw new Error('the receiver was not reserved');
    await receiverApi(ada, 'PATCH', receiver, '', { types: ['logout', 'notices'] });
    const [id] = await writeEvents(app, orgId, 1);
    const place = () =>
      rows(app.dataSource, 'SELECT epoch, xid::text, event_id AS id FROM event_receivers');
    const before = await place();
    await expect.poll(async () => (await endOfFeed(manager, orgId)).id, SOON).toBe(id);
    const end = await endOfFeed(manager, orgId);
    await passBy(manager, taken, end);
    expect(await place()).toEqual(before);
    const [again] = await takeReceivers(manager, [receiver.id]);
    if (!again) throw new Error('the receiver was not released');
    await passBy(manager, again, end);
    expect(await place()).toMatchObject([{ id }]);
  });

  it('go on in the next epoch of the log, from the last place that the database still has', async () => {
    const { server, receiver } = await ground();
    await writeEvents(app, orgId, 1);
    await expect.poll(() => server.received.length, SOON).toBe(1);
    // The receiver's position is moved beyond the last event of the epoch, as if the database had
    // lost the events that it got.
    await receiverApi(ada, 'PATCH', receiver, '', { status: 'paused' });
    await rows(
      app.dataSource,
      "UPDATE event_receivers SET xid = (xid::text::bigint + 1000000)::text::xid8, next_attempt_at = '-infinity'",
    );
    await rows(
      app.dataSource,
      'UPDATE database_identity SET reconciled_at = clock_timestamp(), confirmed_at = clock_timestamp()',
    );
    server.received.splice(0);
    await rows(app.dataSource, "UPDATE event_receivers SET status = 'enabled'");
    const ids = await writeEvents(app, orgId, 2);
    wakeReceivers(app);
    await expect.poll(() => webhookIds(server).slice(-2), SOON).toEqual(ids);
    expect(app.log.join('\n')).toContain('never had the place of an event receiver');
  });
});

describe('the figures of receivers', () => {
  it('are by kind in the statistics of the operator, which an alert reads, and on the page', async () => {
    const { server, receiver } = await ground();
    server.answer = () => 503;
    await writeEvents(app, orgId, 3);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 503');
    const figures = await noticeFigures(app.dataSource.manager, WATCHED_QUEUES, 'all');
    const [own] = figures.filter(
      ({ kind, isSelfRegistered }) => kind === 'audit-webhook' && !isSelfRegistered,
    );
    expect(own).toMatchObject({ waiting: 3 });
    await rows(
      app.dataSource,
      "UPDATE audit_events SET created_at = created_at - interval '16 minutes' WHERE type = 'logout'",
    );
    app.log.splice(0);
    await app.nest.get(NoticeWatch, { strict: false }).look();
    const lines = app.log.filter((line) => line.includes('An event receiver has not taken'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"kind":"audit-webhook"');
    await touch();
    const page = await ada.get(`/admin/event-receivers/${receiver.id}`);
    expect(page.text).toMatch(/data-figure="waiting">3</);
  });
});

requires('the OTLP reader').describe('OTLP logs over HTTP', () => {
  it('are read by the packages of the collector: batches in order, with what the feed has', async () => {
    const { server } = await ground({
      kind: 'otlp',
      header_name: 'X-Scope-OrgID',
      header_value: 'tenant-1',
    });
    server.answer = (n) => (n % 2 === 1 ? 503 : 200); // every second request fails
    const ids = await writeEvents(app, orgId, 60);
    const taken = () => server.received.filter((_, index) => index % 2 === 1);
    const isLastTaken = async () => {
      await retryNow(app);
      return taken().some(({ bytes }) => bytes.includes(ids.at(-1) ?? ''));
    };
    await expect.poll(isLastTaken, SOON).toBe(true);
    const records = taken().flatMap(({ bytes }) => readOtlp(bytes));
    expect(records.map(({ attributes }) => attributes['log.record.uid'])).toEqual(ids);
    expect(server.received.length).toBeLessThan(40);
    const [record] = records;
    const event = JSON.parse(record?.body ?? '{}') as Record<string, unknown>;
    expect(event).toMatchObject({ id: ids[0], type: 'logout', class: 'auth' });
    expect(record).toMatchObject({
      resource: { 'service.name': 'svc-server', 'svc.organization.id': orgId },
      scope: 'svc.audit',
      event: 'svc.audit.logout',
      severity: 'INFO',
      number: 9,
      attributes: { 'svc.audit.type': 'logout', 'svc.audit.cursor': event['cursor'] },
    });
    expect(new Date(record?.time ?? 0).toISOString()).toBe(event['created_at']);
    expect(server.received[0]?.headers).toMatchObject({
      'content-type': 'application/x-protobuf',
      'x-scope-orgid': 'tenant-1',
    });
  });

  it.each([400, 422, 403])(
    'with an event that is never taken (%i) lose this one alone',
    async (status) => {
      const { server } = await ground({ kind: 'otlp' });
      server.answer = () => 503; // refuses everything until the test knows the ids
      const ids = await writeEvents(app, orgId, 30);
      const bad = ids[20];
      const before = server.received.length;
      server.answer = (_, { bytes }) => (bytes.includes(bad ?? '') ? status : 200);
      await untilTaken(server, ids.at(-1) ?? '', bad);
      const taken = server.received
        .slice(before)
        .filter(({ bytes }) => !bytes.includes(bad ?? ''))
        .flatMap(({ bytes }) =>
          readOtlp(bytes).map(({ attributes }) => attributes['log.record.uid']),
        );
      expect(taken.filter((id) => ids.includes(String(id)))).toEqual(
        ids.filter((id) => id !== bad),
      );
      const dead = await rows<{ event_id: string }>(
        app.dataSource,
        'SELECT event_id FROM undelivered_events WHERE dead_at IS NOT NULL',
      );
      expect(dead).toEqual([{ event_id: bad }]);
    },
  );

  it('of which a receiver rejects some are not sent again, and its page says so', async () => {
    const { server, receiver } = await ground({ kind: 'otlp' });
    // OTLP: ExportLogsServiceResponse { partial_success { rejected_log_records: 1 } }
    const body = Buffer.from([0x0a, 0x02, 0x08, 0x01]).toString('latin1');
    const headers = { 'content-type': 'application/x-protobuf' };
    server.answer = () => ({ status: 200, headers, body });
    await writeEvents(app, orgId, 1);
    await expect.poll(() => resultOf(receiver), SOON).toBe('answer 200: 1 events rejected');
    await touch();
    const failed = async () => (await receiverApi(ada, 'GET', receiver)).json.failed as number;
    // The rejection is recorded as an event, which this receiver gets and rejects too.
    await expect.poll(failed, SOON).toBe(2);
    await writeEvents(app, orgId, 1);
    await expect.poll(failed, SOON).toBe(3);
    expect(server.received).toHaveLength(3);
    const audited = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'notice_dead_lettered' AND details ->> 'receiver_id' = $1",
      [receiver.id],
    );
    expect(audited).toMatchObject([{ details: { notice: 'audit-otlp', events: 1 } }]);
  });

  it('go to /v1/logs if the address names no path', async () => {
    await touch();
    const server = await startEventServer('/v1/logs');
    servers.push(server);
    const receiver = await madeReceiver(ada, new URL(server.uri).origin, { kind: 'otlp' });
    expect((await receiverApi(ada, 'GET', receiver)).json).toMatchObject({ url: server.uri });
  });
});
