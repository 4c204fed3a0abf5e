import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatheredStatements } from '../../../src/domain/grants/gathered-statements.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { count } from '../../support/rows.js';

const OWNERS = ['ada@gathered.example', 'bob@gathered.example'];
const ORIGIN = { requestId: 'r', ip: '192.0.2.7', userAgent: 'test' };

describe('statements that requests share', () => {
  let app: TestApp;
  let statements: GatheredStatements;
  /** A client of each owner. */
  let clients: string[];
  beforeAll(async () => {
    app = await startTestApp();
    statements = app.nest.get(GatheredStatements, { strict: false });
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

  const issue = (clientId: string, auditId = randomUUID()) =>
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
    );
  const onRecord = async (clientId: string) => [
    await count(app.dataSource, 'oauth_artifacts WHERE client_id = $1', [clientId]),
    await count(
      app.dataSource,
      "audit_events WHERE details ->> 'client_id' = $1 AND ip = '192.0.2.7'",
      [clientId],
    ),
  ];

  it('every token of a batch has its row and its audit row, and a client that is none gets nothing', async () => {
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

  it('waits for an owner who is being deactivated, issues them nothing, and holds up nobody else', async () => {
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
      await delay(200);
      expect(states).toEqual(['bob true', 'bob true']);
    });
    await Promise.all(pending);
    expect(states).toEqual(['bob true', 'bob true', 'ada false']);
    expect(await onRecord(ada)).toEqual(before);
    await app.dataSource.query('UPDATE users SET active = true');
  });

  it('finds each its own client, and an id that PostgreSQL cannot read is the fault of nobody else', async () => {
    const ids = [...clients, 'nobody', ...clients];
    const found = await Promise.all(ids.map((id) => statements.findClient(id)));
    expect(found.map((client) => client?.id)).toEqual([...clients, undefined, ...clients]);
    const settled = await Promise.allSettled(
      ['\u0000', clients[0] ?? ''].map((id) => statements.findClient(id)),
    );
    expect(settled).toMatchObject([{ status: 'rejected' }, { value: { id: clients[0] } }]);
  });

  it('sees what was committed before it was asked, while earlier statements are under way', async () => {
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
});
