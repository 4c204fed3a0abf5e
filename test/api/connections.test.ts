import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { RawConnection } from '../support/raw-connection.js';

describe('a connection', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ timeouts: { linger: 500 } });
  });
  afterAll(() => app.close());

  const head = (line: string, headers: readonly string[] = []) =>
    [`${line} HTTP/1.1`, `Host: ${new URL(app.baseUrl).host}`, ...headers, '', ''].join('\r\n');
  const answers = (text: string) => text.split('HTTP/1.1 ').length - 1;
  const served = (line: string) => app.log.filter((entry) => entry.includes(`"${line}`)).length;

  it('is closed after some responses when it pipelines without end', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(head('GET /health/ready').repeat(20_000));
    await connection.farewell();
    expect(answers(connection.received)).toBeLessThanOrEqual(33);
    expect(answers(connection.received)).toBeGreaterThan(0);
    expect((await app.client().get('/health')).status).toBe(200);
    expect(served('GET /health/ready')).toBeLessThanOrEqual(33);
  });

  it('may pipeline a few requests', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(
      head('GET /health').repeat(19) + head('GET /health', ['Connection: close']),
    );
    await connection.farewell();
    expect(answers(connection.received)).toBe(20);
  });

  it('serves no request after its last response', async () => {
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(head('POST /nothing', ['Content-Length: 5']));
    await connection.receives('Connection: close');
    connection.socket.write(`12345${head('GET /static/app.css')}`);
    await connection.farewell();
    await delay(50); // a request, if served, would be logged by then
    expect(answers(connection.received)).toBe(1);
    expect(served('GET /static/app.css')).toBe(0);
  });

  it.each([
    ['hidden behind spaces', `charset=${' '.repeat(10_000)}"x`],
    ['of another name', 'charset=latin1'],
    ['twice', 'charset=utf-8; charset=utf-16'],
  ])('with a body in a charset %s gets 415', async (_, parameter) => {
    const headers = { 'content-type': `application/json; ${parameter}` };
    const answer = await app.client().post('/login/webauthn/start', '{}', { headers });
    expect(answer.status).toBe(415);
  });

  it('with a body in an unknown transfer coding gets 415', async () => {
    const headers = [
      `Origin: ${app.baseUrl}`,
      'Content-Type: application/json',
      'Transfer-Encoding: gzip, chunked',
      'Connection: close',
    ];
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(`${head('POST /login/webauthn/start', headers)}2\r\n{}\r\n0\r\n\r\n`);
    expect((await connection.farewell()).status).toBe(415);
  });

  it('accepts a body in UTF-8, in every spelling of the charset', async () => {
    for (const parameter of ['charset=utf-8', ' Charset="UTF-8" ', 'charset=utf8', 'x=y']) {
      const headers = { 'content-type': `application/json;${parameter}` };
      const answer = await app.client().post('/login/webauthn/start', '{}', { headers });
      expect(answer.status).toBe(200);
    }
  });
});
