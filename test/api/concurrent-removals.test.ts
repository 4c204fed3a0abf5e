import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { CALLBACK, newPkce, postForm } from '../support/oauth-flow.js';
import { idOf } from '../support/org-api.js';
import { count } from '../support/rows.js';
import { newProgram } from '../support/signal-streams.js';

describe('a request about a row that another transaction is removing', () => {
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
    ({ client: ada } = await app.enrolled('ada@removals.example'));
  });
  afterAll(() => app.close());

  /**
   * Sends a request while an open transaction holds the lock on a row. As soon as the request waits
   * for the lock, the transaction deletes the row and commits.
   */
  async function whileRemoved(
    { table, column, id }: { readonly table: string; readonly column: string; readonly id: string },
    send: () => Promise<Answer>,
  ): Promise<Answer> {
    const remover = app.dataSource.createQueryRunner();
    await remover.startTransaction();
    await remover.query(`SELECT FROM ${table} WHERE ${column} = $1 FOR UPDATE`, [id]);
    const answer = send();
    await untilWaiting(app.dataSource, 1);
    await remover.query(`DELETE FROM ${table} WHERE ${column} = $1`, [id]);
    await remover.commitTransaction();
    await remover.release();
    return answer;
  }

  let people = 0;

  async function newMember() {
    people += 1;
    const email = `bob-${people}@removals.example`;
    const { client } = await app.enrolled(email);
    return { client, row: { table: 'users', column: 'id', id: await idOf(app, email) } };
  }

  async function newUserCode(): Promise<string> {
    const fields = { client_id: 'svc-cli', scope: 'openid' };
    const { json } = await postForm(app, '/oauth/device', fields);
    return (json as { user_code: string }).user_code;
  }

  it.each(['approve', 'deny'])('POST /device/%s of a removed user is 401', async (act) => {
    const { client, row } = await newMember();
    const userCode = await newUserCode();
    const answer = await whileRemoved(row, () =>
      client.post(`/device/${act}`, { user_code: userCode }),
    );
    expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
  });

  it.each([
    ['a right', newUserCode],
    ['a wrong', () => Promise.resolve('BCDF-GHJK')],
  ])('POST /device with %s code of a removed user is 401', async (_, code) => {
    const { client, row } = await newMember();
    const body = new URLSearchParams({ user_code: await code() }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await whileRemoved(row, () => client.send('POST', '/device', { body, headers }));
    expect(answer.status).toBe(401);
  });

  it('GET /v1/setup of a removed user is no fault', async () => {
    const { client, row } = await newMember();
    const answer = await whileRemoved(row, () => client.get('/v1/setup'));
    expect(answer.status).toBeLessThan(500);
  });

  /** Begins the sign-in of a user to a client that registered itself, up to the consent page. */
  async function waitingConsent(user: Client) {
    const metadata = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' };
    const { json } = await app
      .client()
      .post('/oauth/register', metadata, { address: newAddress() });
    const clientId = (json as { client_id: string }).client_id;
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const begun = await user.get(`/oauth/authorize?${query.toString()}`);
    return { clientId, consent: () => user.post(`${begun.headers.get('location')}/consent`, {}) };
  }

  it('the consent of a removed user is 400, and does not count for the client', async () => {
    const { client, row } = await newMember();
    const { clientId, consent } = await waitingConsent(client);
    const answer = await whileRemoved(row, consent);
    expect(answer.status).toBe(400);
    const consented = 'oauth_clients WHERE id = $1 AND consented_at IS NOT NULL';
    expect(await count(app.dataSource, consented, [clientId])).toBe(0);
  });

  it('the consent to a removed client is no fault', async () => {
    const { client } = await newMember();
    const { clientId, consent } = await waitingConsent(client);
    const row = { table: 'oauth_clients', column: 'id', id: clientId };
    const answer = await whileRemoved(row, consent);
    expect(answer.status).toBeLessThan(500);
  });

  it('a stream of an application whose permission ends is refused', async () => {
    const program = await newProgram(app, ada);
    const { clientId: id } = program.application;
    const row = { table: 'signal_receivers', column: 'client_id', id };
    const answer = await whileRemoved(row, () => program.send('POST', '/ssf/stream', {}));
    expect(answer.status).toBeLessThan(500);
  });
});
