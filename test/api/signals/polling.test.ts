import { randomUUID } from 'node:crypto';
import type { QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { everyRevocation } from '../../../src/domain/admin/revocation-kinds/every-revocation.js';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { PolledSignals } from '../../../src/domain/oauth/shared-signals/polled-signals.service.js';
import { SignalSender } from '../../../src/domain/oauth/shared-signals/signal-sender.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress } from '../../support/client.js';
import { idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { jwksOf, signInTo } from '../../support/signed-in-application.js';
import { statementText } from '../../support/statement-text.js';
import { claimsOf, eventOf, verifySignal } from '../../support/signal-receiver.js';
import {
  createStream,
  newProgram,
  poll,
  programOf,
  signalsApi,
  signalsOf,
  type PolledJson,
  type StreamProgram,
} from '../../support/signal-streams.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
});
afterAll(() => app.close());

let people = 0;

/** Creates an admin who is signed in to an application. The receiver polls its stream. */
async function ground(of = app) {
  people += 1;
  const email = `ada@polled-${people}.example`;
  const { client, key } = await of.enrolled(email);
  const program = await newProgram(of, client);
  const streamId = await createStream(program);
  await signInTo(of, client, program.application);
  return { client, key, program, streamId, userId: await idOf(of, email) };
}

async function queue(streamId: string, n: number, of = app): Promise<void> {
  await rows(
    of.dataSource,
    `INSERT INTO signal_events (stream_id, subject_id, type, body)
     SELECT $1, gen_random_uuid(), 'session-revoked', jsonb_build_object('n', n) FROM generate_series(1, $2) n`,
    [streamId, n],
  );
}

const numbersOf = ({ sets }: PolledJson) =>
  Object.values(sets)
    .map((set) => (Object.values(claimsOf(set)['events'] as object)[0] as { n: number }).n)
    .toSorted((a, b) => a - b);

/** Sends a poll that waits for an event. Resolves with its response. */
function waitingPoll(program: StreamProgram, streamId: string, body: object = {}) {
  return program.send('POST', `/ssf/poll/${streamId}`, body);
}

describe('a poll', () => {
  it('returns tokens by their ids, which a receiver on jose alone verifies', async () => {
    const { client, program, streamId, userId } = await ground();
    await client.send('POST', '/logout', { address: newAddress() });
    const { sets } = await poll(program, streamId);
    const { clientId } = program.application;
    const party = { issuer: app.baseUrl, clientId, streamId, jwks: await jwksOf(app) };
    for (const [jti, token] of Object.entries(sets)) {
      const { payload, type, subject } = await verifySignal(token, party);
      expect([payload.jti, type]).toEqual([jti, 'session-revoked']);
      expect(subject).toEqual({ format: 'iss_sub', iss: app.baseUrl, sub: userId });
    }
    expect(Object.keys(sets)).toHaveLength(1);
  });

  it('returns the oldest events until they are acknowledged, the same tokens each time', async () => {
    const { program, streamId } = await ground();
    await queue(streamId, 5);
    const first = await poll(program, streamId, { maxEvents: 2 });
    expect([numbersOf(first), first.moreAvailable]).toEqual([[1, 2], true]);
    expect(await poll(program, streamId, { maxEvents: 2 })).toEqual(first);
    const ack = Object.keys(first.sets);
    const second = await poll(program, streamId, { ack });
    expect([numbersOf(second), second.moreAvailable]).toEqual([[3, 4, 5], undefined]);
    expect(await poll(program, streamId, { maxEvents: 0, ack: Object.keys(second.sets) })).toEqual({
      sets: {},
    });
    expect(await signalsOf(app, streamId)).toEqual([]);
    const odd = await poll(program, streamId, { ack: [randomUUID(), 'no-uuid'] });
    expect(odd).toEqual({ sets: {} });
  });

  it('reads nothing for the events of other streams while it waits', async () => {
    const [quiet, busy] = [await ground(), await ground()];
    const runner = app.dataSource.createQueryRunner();
    const statements = vi.spyOn(Object.getPrototypeOf(runner) as QueryRunner, 'query');
    const readsOf = (streamId: string) =>
      statements.mock.calls.filter(
        ([text, values = []]) =>
          statementText(text).includes('JOIN signal_events e') &&
          (values as unknown[]).includes(streamId),
      ).length;
    try {
      const waiting = waitingPoll(quiet.program, quiet.streamId);
      await vi.waitUntil(() => readsOf(quiet.streamId) > 0, 90_000);
      const before = readsOf(quiet.streamId);
      for (let n = 1; n <= 5; n += 1) {
        const other = waitingPoll(busy.program, busy.streamId);
        await vi.waitUntil(() => readsOf(busy.streamId) > 0, 90_000);
        await queue(busy.streamId, 1);
        const { sets } = (await other).json as unknown as PolledJson;
        expect(Object.keys(sets)).toHaveLength(1);
        await poll(busy.program, busy.streamId, { maxEvents: 0, ack: Object.keys(sets) });
      }
      expect(readsOf(quiet.streamId)).toBe(before);
      await queue(quiet.streamId, 1);
      expect(Object.keys(((await waiting).json as unknown as PolledJson).sets)).toHaveLength(1);
    } finally {
      statements.mockRestore();
      await runner.release();
    }
  });

  it('limits an answer to 50 events', async () => {
    const { program, streamId } = await ground();
    await queue(streamId, 60);
    const answer = await poll(program, streamId, { maxEvents: 1000 });
    expect([Object.keys(answer.sets).length, answer.moreAvailable]).toEqual([50, true]);
  });

  it('makes an event that the receiver could not process a dead letter', async () => {
    const { client, program, streamId } = await ground();
    await queue(streamId, 2);
    const { sets } = await poll(program, streamId, { maxEvents: 1 });
    const [jti = ''] = Object.keys(sets);
    const setErrs = { [jti]: { err: 'authentication_failed', description: 'unknown key' } };
    const next = await poll(program, streamId, { setErrs });
    expect(numbersOf(next)).toEqual([2]);
    const shown = await signalsApi(client, 'GET', program.application);
    expect(shown.json.dead_letters).toMatchObject([
      { result: 'refused: authentication_failed: unknown key' },
    ]);
    const [{ id }] = shown.json.dead_letters as [{ id: string }];
    await signalsApi(client, 'POST', program.application, undefined, `/${id}/repeat`);
    expect(numbersOf(await poll(program, streamId))).toEqual([1, 2]);
  });

  it('stores what a receiver says of a fault as one line, whatever its characters', async () => {
    const { client, program, streamId } = await ground();
    await queue(streamId, 1);
    const [jti = ''] = Object.keys((await poll(program, streamId)).sets);
    // The stored text is cut after 200 units of UTF-16, here in the middle of a character of two
    // units.
    const description = `\u202e${'x'.repeat(199 - 'refused: bad: '.length - 1)}🔑🔑`;
    const setErrs = { [jti]: { err: 'bad', description } };
    expect(numbersOf(await poll(program, streamId, { setErrs }))).toEqual([]);
    const shown = await signalsApi(client, 'GET', program.application);
    const [letter] = shown.json.dead_letters as [{ result: string }];
    expect(letter.result).toMatch(/^refused: bad: {1,2}x+🔑$/u);
  });

  it('of an application whose owner is deactivated returns nothing, also if it waits', async () => {
    const { program, streamId, userId } = await ground();
    const other = await ground();
    const setActive = (isActive: boolean) =>
      rows(app.dataSource, 'UPDATE users SET active = $2 WHERE id = $1', [userId, isActive]);
    const first = waitingPoll(program, streamId);
    let isAnswered = false;
    void first.then(() => (isAnswered = true));
    await poll(program, streamId);
    await setActive(false);
    await queue(streamId, 2);
    const refused = await waitingPoll(program, streamId);
    expect(refused.status).toBe(401);
    // The replica is notified of commits in their order. When this poll is answered, the replica
    // has already looked at the earlier events.
    const ofOther = waitingPoll(other.program, other.streamId);
    await queue(other.streamId, 1);
    expect(numbersOf((await ofOther).json as PolledJson)).toEqual([1]);
    expect(isAnswered).toBe(false);
    await setActive(true);
    expect(numbersOf((await first).json as PolledJson)).toEqual(expect.arrayContaining([1, 2]));
  });

  it('waits for an event, and returns it at its commit', async () => {
    const { client, program, streamId } = await ground();
    const waiting = waitingPoll(program, streamId);
    // Another poll is answered meanwhile, and the waiting one is not, because there is no event.
    let isAnswered = false;
    void waiting.then(() => (isAnswered = true));
    await poll(program, streamId);
    expect(isAnswered).toBe(false);
    const startedAt = performance.now();
    await client.send('POST', '/logout', { address: newAddress() });
    const answer = await waiting;
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(
      Object.values((answer.json as PolledJson).sets).map((set) => eventOf(claimsOf(set))),
    ).toEqual(['session-revoked']);
  });

  it('that waits is ended by a second one of the stream', async () => {
    const { program, streamId } = await ground();
    const first = waitingPoll(program, streamId);
    const second = waitingPoll(program, streamId);
    const ended = await Promise.race([first, second]);
    expect([ended.status, ended.json]).toEqual([200, { sets: {} }]);
    await queue(streamId, 1);
    const answers = await Promise.all([first, second]);
    expect(answers.flatMap(({ json }) => Object.keys((json as PolledJson).sets))).toHaveLength(1);
  });

  it('that waits is answered when the replica stops, and does not delay the stop', async () => {
    const stopping = await startTestApp();
    const { program, streamId } = await ground(stopping);
    const waiting = waitingPoll(program, streamId);
    await poll(program, streamId);
    const startedAt = performance.now();
    await stopping.close();
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const answer = await waiting;
    expect([answer.status, answer.json]).toEqual([200, { sets: {} }]);
  });

  it('that comes during the stop waits for events, so that its receiver does not poll in a loop', async () => {
    const stopping = await startTestApp();
    const { program, streamId } = await ground(stopping);
    stopping.nest.get(PolledSignals, { strict: false }).onModuleDestroy();
    const waiting = waitingPoll(program, streamId);
    await poll(program, streamId);
    await queue(streamId, 1, stopping);
    expect(numbersOf((await waiting).json as PolledJson)).toEqual([1]);
    await stopping.close();
  });

  it('of a stream that is paused returns nothing, and after it is enabled everything', async () => {
    const { program, streamId } = await ground();
    const status = (to: string, id = streamId) =>
      program.send('POST', '/ssf/status', { stream_id: id, status: to });
    await status('paused');
    await queue(streamId, 2);
    expect(await poll(program, streamId)).toEqual({ sets: {} });
    const waiting = waitingPoll(program, streamId);
    await status('enabled', streamId.toUpperCase());
    expect(numbersOf((await waiting).json as PolledJson)).toEqual([1, 2]);
  });

  it('of a stream that is pushed is not there', async () => {
    const { program, streamId } = await ground();
    await program.send('PATCH', '/ssf/stream', {
      stream_id: streamId,
      delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: 'http://127.0.0.1:9/' },
    });
    const answer = await program.send('POST', `/ssf/poll/${streamId}`, { returnImmediately: true });
    expect(answer.status).toBe(404);
  });

  it('acknowledges no event of another stream', async () => {
    const [one, two] = [await ground(), await ground()];
    await queue(one.streamId, 1);
    const [jti] = Object.keys((await poll(one.program, one.streamId)).sets);
    await poll(two.program, two.streamId, { ack: [jti] });
    await poll(two.program, two.streamId, { setErrs: { [jti ?? '']: { err: 'x' } } });
    expect(numbersOf(await poll(one.program, one.streamId))).toEqual([1]);
  });
});

describe('a stream that is not polled', () => {
  it('keeps events for 7 days, and then says that some were dropped', async () => {
    const { program, streamId } = await ground();
    await queue(streamId, 3);
    await rows(
      app.dataSource,
      `UPDATE signal_events SET created_at = created_at - interval '7 days 1 minute'
       WHERE stream_id = $1 AND body ->> 'n' <> '3'`,
      [streamId],
    );
    const sender = app.nest.get(SignalSender, { strict: false });
    expect([await sender.dropStale(), await sender.dropStale()]).toEqual([2, 0]);
    const { sets } = await poll(program, streamId);
    expect(Object.values(sets).map((set) => eventOf(claimsOf(set)))).toEqual([
      'session-revoked',
      'stream-updated',
    ]);
  });

  it('leaves nothing after it is deleted: the clean-up takes its events, and old dead letters', async () => {
    const { program, streamId } = await ground();
    const kept = await ground();
    await queue(streamId, 3);
    await queue(kept.streamId, 2);
    await rows(
      app.dataSource,
      `UPDATE signal_events SET dead_at = now() - interval '31 days' WHERE stream_id = $1 AND body ->> 'n' = '1'`,
      [kept.streamId],
    );
    await program.send('DELETE', `/ssf/stream?stream_id=${streamId}`);
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await count(app.dataSource, 'signal_events WHERE stream_id = $1', [streamId])).toBe(0);
    expect(await count(app.dataSource, 'signal_events WHERE stream_id = $1', [kept.streamId])).toBe(
      1,
    );
  });
});

describe('after a restore', () => {
  it('each stream is there, and says that events may be lost, and that sessions ended', async () => {
    const { program, streamId, userId } = await ground();
    await everyRevocation().endOnRecord((work) => app.dataSource.transaction(work), {
      reason: 'database lost commits',
      revokedBy: 'reconciliation',
    });
    // The access token has ended with everything else. The application gets a new one by its
    // secret, which is kept.
    const again = await programOf(app, program.application);
    const sets = Object.values((await poll(again, streamId)).sets).map(claimsOf);
    expect(sets.map(eventOf)).toEqual(['stream-updated', 'session-revoked']);
    expect(sets[0]?.['sub_id']).toEqual({ format: 'opaque', id: streamId });
    expect(sets[1]?.['sub_id']).toMatchObject({ sub: userId });
  });
});
