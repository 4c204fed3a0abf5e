import { Controller, Get, Module, Res } from '@nestjs/common';
import type { Response } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DomainError } from '#platform/errors/domain-error.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';

/** Routes of this test that never answer, refuse or fail. */
@Controller()
@Route({ tier: 'general', auth: PUBLIC })
class StubbornController {
  @Get('test/never')
  never(): Promise<never> {
    return new Promise(() => undefined);
  }

  @Get('test/busy')
  busy(): never {
    throw new DomainError('rate_limited', 'Too many of these.', { retryAfter: 7 });
  }

  @Get('test/busy-for-a-while')
  busyForAWhile(): never {
    throw new DomainError('rate_limited', 'Too many of these.');
  }

  @Get('test/foreign')
  foreign(@Res() response: Response): void {
    response.writeHead(429, { 'Retry-After': '3' }).end();
  }
}

@Module({ controllers: [StubbornController] })
class StubbornModule {}

describe('the rate-limit headers', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      modules: [StubbornModule],
      timeouts: { request: 300, linger: 200 },
    });
  });
  afterAll(() => app.close());

  it.each([
    ['400', 'no request at all\r\n\r\n'],
    ['400', 'GET /%zz HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n'],
    ['405', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n'],
    ['417', 'GET / HTTP/1.1\r\nHost: HOST\r\nExpect: miracles\r\nConnection: close\r\n\r\n'],
    ['421', 'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
    ['431', `GET / HTTP/1.1\r\nHost: HOST\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
  ])('10.words are on a %s that the edge answers', async (status, bytes) => {
    const { host } = new URL(app.baseUrl);
    const answer = await rawExchange(app.baseUrl, bytes.replace('HOST', host));
    expect(answer.status).toBe(Number(status));
    expect(answer.header('x-ratelimit-limit')).toBe('20');
    expect(answer.header('x-ratelimit-remaining')).toBe('20');
  });

  it('10.words are on a 408, with the remaining tokens of its route’s tier', async () => {
    const answer = await app.client().get('/test/never');
    expect(answer.status).toBe(408);
    expect(answer.headers.get('x-ratelimit-limit')).toBe('20');
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('19');
  });

  it('10.words state the client’s General tier as the process knows it, without a query', async () => {
    const client = app.client();
    for (let n = 0; n < 3; n += 1) await client.get('/v1/keys');
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('LOCK TABLE rate_limits IN ACCESS EXCLUSIVE MODE');
    const answer = await client.get('/health');
    await runner.rollbackTransaction();
    await runner.release();
    expect(answer.headers.get('x-ratelimit-remaining')).toMatch(/^1[789]$/);
  });

  it.each([
    ['/test/busy', '7'],
    ['/test/busy-for-a-while', '1'],
    ['/test/foreign', '3'],
  ])('10.words state how long to wait twice on the 429 of %s', async (path, wait) => {
    const answer = await app.client().get(path);
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe(wait);
    expect(answer.headers.get('x-ratelimit-after')).toBe(wait);
  });

  it('10.words cannot be set by a client', async () => {
    const forged = [`X-Forwarded-For: ${newAddress()}`, 'x-ratelimit-limit: 1000'];
    const host = `Host: ${new URL(app.baseUrl).host}`;
    const bytes = requestBytes(app.baseUrl, 'GET /health', [host, ...forged]);
    const { headers } = await rawExchange(app.baseUrl, bytes);
    const stated = headers.filter(([name]) => name.toLowerCase() === 'x-ratelimit-limit');
    expect(stated.map(([, value]) => value)).toEqual(['20']);
  });
});
