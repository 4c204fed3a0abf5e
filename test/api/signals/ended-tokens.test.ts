import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { databaseDigest } from '../../support/database-digest.js';
import { withLateBody } from '../../support/raw-http.js';
import { rows } from '../../support/rows.js';
import {
  createStream,
  newProgram,
  poll,
  programOf,
  type StreamProgram,
} from '../../support/signal-streams.js';

describe('a token of a receiver that ends while its request runs', () => {
  let app: TestApp;
  let ada: Client;
  let program: StreamProgram;
  let streamId: string;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
    ({ client: ada } = await app.enrolled('ada@ended-tokens.example'));
  });
  beforeEach(async () => {
    program = await newProgram(app, ada);
    streamId = await createStream(program);
  });
  afterAll(() => app.close());

  async function endTokens(): Promise<void> {
    const { clientId } = program.application;
    const path = `/api/v1/applications/${clientId}/revoke-tokens`;
    const answer = await ada.post(path, {}, { address: newAddress() });
    expect([answer.status, answer.json]).toEqual([200, { revoked: 1 }]);
  }

  const queueEvent = () =>
    rows(
      app.dataSource,
      `INSERT INTO signal_events (stream_id, subject_id, type) VALUES ($1, gen_random_uuid(), 'session-revoked')`,
      [streamId],
    );

  /** Sends a request whose body comes only after the tokens of the application have ended. */
  async function sendLate(line: string, body: object) {
    const headers = {
      authorization: `Bearer ${program.token}`,
      'content-type': 'application/json',
      'x-forwarded-for': newAddress(),
    };
    const send = await withLateBody(app.baseUrl, line, headers, body);
    await endTokens();
    const before = await databaseDigest(app.dataSource);
    const answer = await send();
    expect(await databaseDigest(app.dataSource)).toEqual(before);
    return answer;
  }

  const PUSH = { method: 'urn:ietf:rfc:8935', endpoint_url: 'http://127.0.0.1:9/thief' };

  it.each<readonly [string, object]>([
    ['PATCH /ssf/stream', { delivery: PUSH }],
    ['PUT /ssf/stream', { delivery: PUSH }],
    ['POST /ssf/status', { status: 'disabled' }],
    ['POST /ssf/verify', {}],
    [
      'POST /ssf/subjects/remove',
      { subject: { format: 'email', email: 'ada@ended-tokens.example' } },
    ],
  ])('%s: a body that comes after the end is 401, and changes nothing', async (line, body) => {
    const answer = await sendLate(line, { stream_id: streamId, ...body });
    expect(answer.status).toBe(401);
    expect(answer.header('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/);
  });

  it('POST /ssf/stream: a body that comes after the end is 401, and makes no stream', async () => {
    await program.send('DELETE', `/ssf/stream?stream_id=${streamId}`);
    expect((await sendLate('POST /ssf/stream', { delivery: PUSH })).status).toBe(401);
  });

  it('POST /ssf/poll: a body that comes after the end is 401, and acknowledges nothing', async () => {
    await queueEvent();
    const [event] = await rows<{ jti: string }>(
      app.dataSource,
      'SELECT jti FROM signal_events WHERE stream_id = $1',
      [streamId],
    );
    const answer = await sendLate(`POST /ssf/poll/${streamId}`, {
      ack: [event?.jti],
      returnImmediately: true,
    });
    expect(answer.status).toBe(401);
  });

  it('a poll that waits gets no event after the end; the next token gets it', async () => {
    const waiting = program.send('POST', `/ssf/poll/${streamId}`, {});
    // When another poll is answered, the first one waits for events.
    await poll(program, streamId);
    await endTokens();
    await queueEvent();
    const next = await programOf(app, program.application);
    const got = await next.send('POST', `/ssf/poll/${streamId}`, {});
    expect(Object.keys((got.json as { sets: object }).sets)).toHaveLength(1);
    expect((await waiting).json).toEqual({ sets: {} });
  });
});
