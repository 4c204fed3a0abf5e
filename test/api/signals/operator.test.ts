import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { adminCommand, handTo } from '../../support/break-glass.js';
import { newAddress } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { rows } from '../../support/rows.js';
import {
  eventOf,
  startSignalReceiver,
  type SignalReceiver,
} from '../../support/signal-receiver.js';
import { createStream, newProgram, signalsOf } from '../../support/signal-streams.js';
import { signInTo } from '../../support/signed-in-application.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

/** Creates an admin with an application and its stream: pushed to `uri`, or polled without one. */
async function ground(app: TestApp, domain: string, uri?: string, header?: string) {
  const email = `ada@${domain}`;
  const { client } = await app.enrolled(email);
  const program = await newProgram(app, client);
  const streamId = await createStream(program, uri);
  if (uri !== undefined) {
    const delivery = {
      method: 'urn:ietf:rfc:8935',
      endpoint_url: uri,
      authorization_header: header,
    };
    const change = { stream_id: streamId, delivery };
    expect((await program.send('PATCH', '/ssf/stream', change)).status).toBe(200);
  }
  await signInTo(app, client, program.application);
  return { email, client, streamId };
}

describe('a command of the operator', () => {
  let database: TestDatabase;
  let app: TestApp;
  beforeAll(async () => {
    database = await createTestDatabase();
    app = await startTestApp({ database, failoverLimits: { heartbeat: 20 } });
    // The command accepts only a database of production. The running application has checked for
    // one of the tests already, at its start.
    await handTo(app.dataSource, 'production');
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
  });
  const command = (args: readonly string[], input: string) =>
    adminCommand(args, { url: database.url, input });
  const told = async (streamId: string) =>
    (await signalsOf(app, streamId)).map(({ type, body }) => [
      type,
      body['initiating_entity'],
      (body['reason_admin'] as { en: string } | undefined)?.en,
    ]);

  it('that revokes everything of a person tells the streams of that organization alone', async () => {
    const { email, streamId } = await ground(app, 'glass-one.example');
    const other = await ground(app, 'glass-two.example');
    const done = await command(['revoke-everything', email], `${email}\n`);
    expect([done.status, done.stderr]).toEqual([0, expect.any(String)]);
    const reason = 'everything revoked by the operator';
    expect(await told(streamId)).toEqual([
      ['session-revoked', 'admin', reason],
      ['credential-change', 'admin', reason],
    ]);
    expect(await told(other.streamId)).toEqual([]);
  });

  it('reconcile tells every stream once that events may be lost', async () => {
    const grounds = [
      await ground(app, 'glass-three.example'),
      await ground(app, 'glass-four.example'),
    ];
    const done = await command(['reconcile'], 'reconcile\n');
    expect([done.status, done.stderr]).toEqual([0, expect.any(String)]);
    for (const { streamId } of grounds) {
      const signals = await signalsOf(app, streamId);
      const updates = signals.filter(({ type }) => type === 'stream-updated');
      expect(updates.map(({ body }) => body)).toEqual([
        {
          status: 'enabled',
          reason:
            'The database of the transmitter was restored or lost its last changes. Events may be lost or told twice.',
        },
      ]);
    }
  });
});

describe('the Authorization header of a receiver', () => {
  let database: TestDatabase;
  let folder: string;
  let receiver: SignalReceiver;
  beforeAll(async () => {
    database = await createTestDatabase();
    folder = await makeTemporaryDirectory();
    receiver = await startSignalReceiver();
  });
  afterAll(async () => {
    await receiver.close();
    await database.drop();
    await removeDirectory(folder);
  });

  const [OLD, NEW] = ['the root secret before the change', 'the root secret after the change'];
  const startWith = (secret: string, previous = '') =>
    startTestApp({
      database,
      environment: {
        SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key'),
        SVC_JWT_SECRET: secret,
        SVC_JWT_SECRET_PREVIOUS: previous,
      },
    });

  it('is sealed again when the root secret changes, and every push carries it', async () => {
    const header = `Bearer ${randomUUID()}`;
    let app = await startWith(OLD);
    const { client, streamId } = await ground(app, 'sealed.example', receiver.uri, header);
    await client.send('POST', '/logout', { address: newAddress() });
    await expect.poll(() => receiver.received.length).toBe(1);
    const sealed = async () => {
      const [row] = await rows<{ sealed: string }>(
        app.dataSource,
        'SELECT authorization_sealed AS sealed FROM signal_streams WHERE id = $1',
        [streamId],
      );
      return row?.sealed;
    };
    const seals = [await sealed()];
    const changes = [
      [OLD, NEW],
      [NEW, OLD],
      [NEW, ''],
    ] as const;
    for (const [secret, previous] of changes) {
      await app.close();
      app = await startWith(secret, previous);
      const before = receiver.received.length;
      await rows(
        app.dataSource,
        "INSERT INTO signal_events (stream_id, subject_id, type) VALUES ($1, $1, 'verification')",
        [streamId],
      );
      await expect.poll(() => receiver.received.length).toBe(before + 1);
      seals.push(await sealed());
    }
    const [first, still, resealed, last] = seals;
    expect([still === first, resealed === first, last === resealed]).toEqual([true, false, true]);
    expect(seals.join()).not.toContain(header);
    const headers = receiver.received.map((one) => one.headers['authorization']);
    expect(headers).toEqual([header, header, header, header]);
    const events = receiver.received.map(({ claims }) => eventOf(claims));
    expect(events).toEqual(['session-revoked', 'verification', 'verification', 'verification']);

    // Under another root secret the header of the receiver cannot be opened, so that nothing is
    // sent.
    await app.close();
    app = await startWith('another root secret than the service had');
    await rows(
      app.dataSource,
      "INSERT INTO signal_events (stream_id, subject_id, type) VALUES ($1, $1, 'verification')",
      [streamId],
    );
    await expect
      .poll(async () => (await signalsOf(app, streamId))[0]?.last_result)
      .toBe('no request was sent');
    expect(receiver.received).toHaveLength(4);
    await app.close();
  });
});
