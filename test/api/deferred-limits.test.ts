import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { DriverClient } from '#platform/database/hosts/driver-client.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { cliToken } from '../support/cli-token.js';
import { newAddress } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { headOf, RawConnection } from '../support/raw-connection.js';
import { rows } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const PATH = '/v1/credentials/ssh';

/** An advisory lock at which the statements wait that issue certificates. */
const GATE = 14_002;

describe('a rate limit in which the statement of a certificate counts', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@deferred.example');
    await app.dataSource.query(`
      CREATE FUNCTION park() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(${GATE});
        RETURN NEW;
      END $$`);
    await app.dataSource.query(
      'CREATE TRIGGER park BEFORE INSERT ON ssh_certificates FOR EACH ROW EXECUTE FUNCTION park()',
    );
  });
  afterAll(() => app.close());
  /** Gets a certificate, so that the process remembers the caller. */
  beforeEach(async () => {
    const { status, text } = await ask();
    if (status !== 200) throw new Error(text);
  });

  const ask = (address = newAddress()) =>
    ada.client.post(PATH, { public_key: newPublicKeyLine() }, { address });
  const statuses = async (answers: readonly ReturnType<typeof ask>[]) =>
    (await Promise.all(answers)).map(({ status }) => status);

  /** Runs `work` while the statements that issue certificates wait. */
  async function whileParked(work: () => Promise<void>): Promise<void> {
    const runner = app.dataSource.createQueryRunner();
    await runner.query('SELECT pg_advisory_lock($1)', [GATE]);
    try {
      await work();
    } finally {
      await runner.query('SELECT pg_advisory_unlock($1)', [GATE]);
      await runner.release();
    }
  }

  it('delays no request of another address while the statement takes long', async () => {
    const addresses = [newAddress(), newAddress()];
    const answers: ReturnType<typeof ask>[] = [];
    await whileParked(async () => {
      for (const [n, address] of addresses.entries()) {
        answers.push(ask(address));
        await untilWaiting(app.dataSource, n + 1);
      }
      for (const address of addresses) {
        answers.push(ask(address));
        await delay(40); // so that each would have a statement of its own
      }
      expect((await app.client().get('/v1/keys')).status).toBe(401);
      await delay(40);
    });
    expect(await statuses(answers)).toEqual([200, 200, 200, 200]);
    const debts = await rows<{ n: number }>(
      app.dataSource,
      `SELECT round(extract(epoch FROM tat - now()) / 2)::int AS n FROM rate_limits WHERE bucket = ANY ($1)`,
      [addresses.map((address) => `issuance ${address}`)],
    );
    // An interval may have passed on a busy machine.
    for (const { n } of debts) expect([1, 2]).toContain(n);
    expect(app.log.filter((line) => line.includes('Rate limits are'))).toEqual([]);
  });

  it.each([
    ['token', `DELETE FROM oauth_artifacts WHERE model = 'AccessToken'`],
    [
      'use of the token',
      `UPDATE oauth_artifacts SET consumed_at = now() WHERE model = 'AccessToken'`,
    ],
    ['grant', 'DELETE FROM oauth_grants'],
    ['session', 'DELETE FROM sessions'],
    ['account', 'UPDATE users SET active = false'],
  ])('issues nothing if the %s ends while the statement waits for its row', async (_, end) => {
    const { token } = await cliToken(app, ada.key, { bound: false });
    const address = newAddress();
    const headers = { origin: '', authorization: `Bearer ${token}` };
    const issue = () =>
      app.client().post(PATH, { public_key: newPublicKeyLine() }, { address, headers });
    expect((await issue()).status).toBe(200);
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('SELECT FROM rate_limits WHERE bucket = $1 FOR UPDATE', [
      `issuance ${address}`,
    ]);
    const asked = issue();
    await untilWaiting(app.dataSource, 1);
    await app.dataSource.query(end);
    await runner.commitTransaction();
    await runner.release();
    const answer = await asked;
    await app.dataSource.query('DELETE FROM users');
    ada = await app.enrolled('ada@deferred.example');
    expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
  });

  it.each(['55P03', '40P01'])(
    'issues certificates although the row of the limit cannot be locked: %s',
    async (state) => {
      await app.dataSource.query(`
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION 'locked' USING ERRCODE = '${state}';
        END $$`);
      await app.dataSource.query(
        'CREATE TRIGGER refuse BEFORE INSERT ON rate_limits FOR EACH ROW EXECUTE FUNCTION refuse()',
      );
      const answers = await statuses([ask(), ask()]);
      await app.dataSource.query('DROP FUNCTION refuse CASCADE');
      expect(answers).toEqual([200, 200]);
      // The process leaves no decision to a statement before the database decides again.
      const lines = (text: string) => app.log.filter((line) => line.includes(text)).length;
      const again = async () => {
        await app.client().get('/v1/keys');
        return lines('The database decides about rate limits again');
      };
      await expect.poll(again, { timeout: 5_000 }).toBe(lines("this process's own"));
    },
  );

  it('counts a request whose client has left and the next one by different statements', async () => {
    const address = newAddress();
    const query = vi.spyOn(DriverClient.prototype, 'query');
    const answers: ReturnType<typeof ask>[] = [];
    await whileParked(async () => {
      for (const waiting of [1, 2]) {
        answers.push(ask());
        await untilWaiting(app.dataSource, waiting);
      }
      const body = JSON.stringify({ public_key: newPublicKeyLine() });
      const head = headOf(app.baseUrl, `POST ${PATH}`, [
        'Content-Type: application/json',
        `Authorization: Bearer ${ada.client.cookie('svc_session')}`,
        `Content-Length: ${body.length}`,
      ]);
      const left = new RawConnection(app.baseUrl);
      left.socket.write(head.replace(/X-Forwarded-For: .*/, `X-Forwarded-For: ${address}`) + body);
      await delay(40);
      left.socket.destroy();
      await vi.waitFor(() => {
        expect(app.log.filter((line) => line.includes(`POST ${PATH} aborted`))).toHaveLength(1);
      }, 10_000);
      answers.push(ask(address));
      await delay(40);
    });
    expect(await statuses(answers)).toEqual([200, 200, 200]);
    const results = await Promise.allSettled(
      query.mock.results.map(({ value }) => value as unknown),
    );
    query.mockRestore();
    expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
  });
});
