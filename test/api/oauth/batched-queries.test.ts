import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/domain/access/issuance/issuance.repository.js';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { count, rows } from '../../support/rows.js';

const OWNERS = ['ada@gathered.example', 'bob@gathered.example'];
const ORIGIN = { requestId: 'r', ip: '192.0.2.7', userAgent: 'test' };

describe('statements that requests share', () => {
  let app: TestApp;
  let statements: BatchedQueries;
  /** The ids of the clients, one of each owner. */
  let clients: string[];
  beforeAll(async () => {
    app = await startTestApp();
    statements = app.nest.get(BatchedQueries, { strict: false });
    clients = [];
    for (const owner of OWNERS) {
      await app.enrolled(owner);
      const { clientId } = await addApplication(
        app,
        { redirect_uris: [], grant_types: ['client_credentials'], response_types: [] },
        { owner },
      );
      clients.push(clientId);
    }
  });
  afterAll(() => app.close());

  const isIssued = async (outcome: Promise<Outcome<true>>) => 'issued' in (await outcome);
  const issue = (clientId: string, auditId = randomUUID()) =>
    isIssued(
      statements.issueToClient(
        {
          model: 'ClientCredentials',
          id: Buffer.from(auditId),
          payload: { clientId },
          grantId: null,
          clientId,
          userId: null,
          userCode: null,
          expiresIn: 60,
        },
        { auditId, origin: ORIGIN, details: { client_id: clientId } },
      ),
    );
  const onRecord = async (clientId: string) => [
    await count(app.dataSource, 'oauth_artifacts WHERE client_id = $1', [clientId]),
    await count(
      app.dataSource,
      "audit_events WHERE details ->> 'client_id' = $1 AND ip = '192.0.2.7'",
      [clientId],
    ),
  ];

  it('every token of a batch has its row and its audit row, and an unknown client gets nothing', async () => {
    const [ada = '', bob = ''] = clients;
    const asked = [ada, bob, 'nobody', ada, bob, ada];
    const issued = await Promise.all(asked.map((client) => issue(client)));
    expect(issued).toEqual([true, true, false, true, true, true]);
    expect(await onRecord(ada)).toEqual([3, 3]);
    expect(await onRecord(bob)).toEqual([2, 2]);
    expect(await onRecord('nobody')).toEqual([0, 0]);
  });

  it('a token that cannot be written fails alone', async () => {
    const [ada = '', bob = ''] = clients;
    const [before] = await onRecord(bob);
    const taken = randomUUID();
    expect(await issue(ada, taken)).toBe(true);
    const settled = await Promise.allSettled([issue(bob), issue(ada, taken), issue(bob)]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await onRecord(bob)).toEqual([(before ?? 0) + 2, (before ?? 0) + 2]);
  });

  it('waits for an owner who is being deactivated, issues that owner nothing, and does not delay other users', async () => {
    const [ada = '', bob = ''] = clients;
    const before = await onRecord(ada);
    const states: string[] = [];
    let pending: Promise<void>[] = [];
    await app.dataSource.transaction(async (tx) => {
      await tx.query('UPDATE users SET active = false WHERE email = $1', [OWNERS[0]]);
      const note = async (name: string, client: string) => {
        states.push(`${name} ${await issue(client)}`);
      };
      pending = [note('ada', ada), note('bob', bob), note('bob', bob)];
      await expect.poll(() => states).toEqual(['bob true', 'bob true']);
      await untilWaiting(app.dataSource, 1);
    });
    await Promise.all(pending);
    expect(states).toEqual(['bob true', 'bob true', 'ada false']);
    expect(await onRecord(ada)).toEqual(before);
    await app.dataSource.query('UPDATE users SET active = true');
  });

  it('finds the client of each request, and a malformed id fails alone', async () => {
    const ids = [...clients, 'nobody', ...clients];
    const found = await Promise.all(ids.map((id) => statements.findClient(id)));
    expect(found.map((client) => client?.id)).toEqual([...clients, undefined, ...clients]);
    const settled = await Promise.allSettled(
      ['\u0000', clients[0] ?? ''].map((id) => statements.findClient(id)),
    );
    expect(settled).toMatchObject([{ status: 'rejected' }, { value: { id: clients[0] } }]);
  });

  it('sees earlier commits, while earlier statements are still running', async () => {
    const [, bob = ''] = clients;
    const earlier = Array.from({ length: 50 }, async (_, turn) => {
      await delay(turn % 10);
      return statements.findClient(bob);
    });
    await delay(5);
    await app.dataSource.query('UPDATE users SET active = false WHERE email = $1', [OWNERS[1]]);
    expect(await statements.findClient(bob)).toBeUndefined();
    await app.dataSource.query('UPDATE users SET active = true');
    expect(await statements.findClient(bob)).toMatchObject({ id: bob });
    await Promise.all(earlier);
  });

  describe('batched statements that write for users', () => {
    interface Person {
      readonly id: string;
      readonly sessionId: string;
    }
    let people: readonly [Person, Person];
    beforeAll(async () => {
      people = (await Promise.all(
        OWNERS.map(async (email) => {
          const [row] = await rows<Person>(
            app.dataSource,
            `SELECT u.id, s.id AS "sessionId" FROM users u JOIN sessions s ON s.user_id = u.id
             WHERE u.email = $1 AND s.level = 'verified'`,
            [email],
          );
          return row;
        }),
      )) as [Person, Person];
    });

    const grant = async ({ id: userId, sessionId }: Person, id = randomBytes(32)) => {
      const about = { clientId: 'svc-cli', userId, sessionId, payload: { userId }, expiresIn: 60 };
      const isWritten = await isIssued(statements.writeGrant({ id, ...about }));
      return isWritten ? id : undefined;
    };
    const artifact = (person: Person, grantId: Buffer | undefined, payload: object = {}) => ({
      model: 'AuthorizationCode',
      id: randomBytes(32),
      payload,
      grantId: grantId ?? null,
      clientId: 'svc-cli',
      userId: person.id,
      userCode: null,
      expiresIn: 60,
    });
    const token = (person: Person, grantId: Buffer | undefined) =>
      isIssued(
        statements.issueToUser(
          { ...artifact(person, grantId), model: 'AccessToken' },
          { auditId: randomUUID(), origin: ORIGIN, details: { grant: grantId?.toString('hex') } },
        ),
      );
    const rowsOf = (grantId: Buffer | undefined, model: string) =>
      count(app.dataSource, 'oauth_artifacts WHERE grant_id = $1 AND model = $2', [grantId, model]);

    it('each has the requested grant, code and token, and an audit row with the token', async () => {
      const [ada, bob] = people;
      const grants = await Promise.all([ada, bob, ada].map((person) => grant(person)));
      expect(grants).not.toContain(undefined);
      const codes = [ada, bob, ada].map((person, n) => artifact(person, grants[n], { n }));
      await Promise.all(codes.map((code) => statements.writeArtifact(code)));
      const found = await Promise.all(codes.map((code) => statements.findArtifact(code)));
      expect(found).toMatchObject(
        [ada, bob, ada].map(({ id }, n) => ({
          payload: { n },
          grant: { payload: { userId: id }, isOver: false, resourceOwner: { userId: id } },
        })),
      );
      const issued = await Promise.all(
        [ada, bob, ada].map((person, n) => token(person, grants[n])),
      );
      expect(issued).toEqual([true, true, true]);
      for (const id of grants) {
        expect(await rowsOf(id, 'AccessToken')).toBe(1);
        const audited = "audit_events WHERE details ->> 'grant' = $1";
        expect(await count(app.dataSource, audited, [id?.toString('hex')])).toBe(1);
      }
    });

    it('nothing is written under the grant or session of another user, or an ended one', async () => {
      const [ada, bob] = people;
      const mine = await grant(ada);
      expect(await grant({ ...ada, sessionId: bob.sessionId })).toBeUndefined();
      expect(await grant({ ...ada, sessionId: randomUUID() })).toBeUndefined();
      const issued = [token(ada, mine), token(bob, mine), token(ada, randomBytes(32))];
      expect(await Promise.all(issued)).toEqual([true, false, false]);
      const written = [mine, randomBytes(32), undefined].map((id) =>
        statements.writeArtifact(artifact(ada, id)),
      );
      const settled = await Promise.allSettled(written);
      expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(settled[1]).toMatchObject({ reason: { code: '23503' } });
    });

    it('a duplicate row of one batch is written twice, and the last value stays', async () => {
      const [ada] = people;
      const row = artifact(ada, await grant(ada));
      const payloads = [1, 2, 3].map((turn) => ({ turn }));
      await Promise.all(payloads.map((payload) => statements.writeArtifact({ ...row, payload })));
      const found = await statements.findArtifact(row);
      expect(payloads).toContainEqual(found?.payload);
      await statements.writeArtifact({ ...row, payload: { turn: 4 } });
      expect(await statements.findArtifact(row)).toMatchObject({ payload: { turn: 4 } });
    });

    it('a row is consumed once, by the first request, and an unknown row never', async () => {
      const [ada, bob] = people;
      const codes = [artifact(ada, await grant(ada)), artifact(bob, await grant(bob))];
      await Promise.all(codes.map((code) => statements.writeArtifact(code)));
      const [one, other] = codes as [(typeof codes)[0], (typeof codes)[0]];
      const nobody = artifact(ada, undefined);
      const consumed = [one, other, one, nobody, other].map((code) => statements.consume(code));
      expect(await Promise.all(consumed)).toEqual([true, true, false, false, false]);
      expect(await statements.consume(one)).toBe(false);
    });

    it('waits for a user who is being deactivated, issues that user nothing, and does not delay other users', async () => {
      const [ada, bob] = people;
      const grants = [await grant(ada), await grant(bob)] as const;
      const ofAda = artifact(ada, grants[0]);
      const ofBob = artifact(bob, grants[1]);
      await Promise.all([ofAda, ofBob].map((code) => statements.writeArtifact(code)));
      const done: string[] = [];
      const note = async (name: string, act: Promise<unknown>) => {
        done.push(`${name} ${String(await act)}`);
      };
      let pending: Promise<void>[] = [];
      await app.dataSource.transaction(async (tx) => {
        await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [ada.id]);
        await tx.query('UPDATE users SET active = false WHERE id = $1', [ada.id]);
        await tx.query('UPDATE oauth_artifacts SET consumed_at = now() WHERE id = $1', [ofAda.id]);
        pending = [
          note('ada consumes', statements.consume(ofAda)),
          note('bob consumes', statements.consume(ofBob)),
          note('ada is granted', grant(ada)),
          note('bob is granted', grant(bob, Buffer.from('granted'))),
          note('ada is issued', token(ada, grants[0])),
          note('bob is issued', token(bob, grants[1])),
          note('ada writes', statements.writeArtifact(artifact(ada, grants[0]))),
          note('bob writes', statements.writeArtifact(artifact(bob, grants[1]))),
        ];
        await expect.poll(() => done.length).toBe(4);
        await untilWaiting(app.dataSource, 4);
        expect(done.toSorted()).toEqual([
          'bob consumes true',
          'bob is granted granted',
          'bob is issued true',
          'bob writes undefined',
        ]);
      });
      await Promise.all(pending);
      const ofAdas = done.filter((line) => line.startsWith('ada')).toSorted();
      expect(ofAdas).toEqual([
        'ada consumes false',
        'ada is granted undefined',
        'ada is issued false',
        // a write does not check the user; a later request with the artifact is refused, because
        // its user is inactive
        'ada writes undefined',
      ]);
      expect(await rowsOf(grants[0], 'AccessToken')).toBe(0);
      await app.dataSource.query('UPDATE users SET active = true');
    });
  });
});
