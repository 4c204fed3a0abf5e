import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UpstreamHttp } from '#platform/outbound/upstream-http.js';

const http = new UpstreamHttp([]);
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/empty') return response.writeHead(204).end();
    let body = '';
    request.setEncoding('utf8').on('data', (part) => (body += part));
    return request.on('end', () => {
      response.writeHead(request.url === '/missing' ? 404 : 200, {
        Date: 'Sat, 01 Jan 2000 00:00:00 GMT',
        'X-Empty': '',
        'Set-Cookie': ['a=1', 'b=2'],
      });
      response.end(`\uFEFF${JSON.stringify({ method: request.method, body, text: 'é' })}`);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await http.close();
  server.close();
});

describe('a response of an upstream server', () => {
  it('reads as a global Response does, for this service and for openid-client', async () => {
    for (const path of ['/', '/missing']) {
      const answer = await http.fetch(`${url}${path}`, { method: 'POST', body: 'a=b' });
      const global = await http.fetchForLibrary(`${url}${path}`, {
        method: 'POST',
        body: new URLSearchParams({ a: 'b' }),
      });
      expect(global).toBeInstanceOf(Response);
      for (const name of ['Date', 'x-empty', 'set-cookie', 'absent']) {
        expect(answer.headers.get(name), name).toBe(global.headers.get(name));
        expect(answer.headers.has(name), name).toBe(global.headers.has(name));
      }
      expect([answer.status, answer.ok]).toEqual([global.status, global.ok]);
      const text = await global.text();
      expect(await answer.text()).toBe(text);
      expect(await answer.json()).toEqual({ method: 'POST', body: 'a=b', text: 'é' });
    }
  });

  it('may have no body', async () => {
    const answer = await http.fetch(`${url}/empty`, {});
    expect([answer.status, answer.ok, await answer.text()]).toEqual([204, true, '']);
    await expect(answer.json()).rejects.toThrow(SyntaxError);
    expect((await http.fetchForLibrary(`${url}/empty`, {})).status).toBe(204);
  });

  it('belongs to a GET request if the method is unknown', async () => {
    const answer = await http.fetch(url, { method: 'PATCH' });
    expect(await answer.json()).toMatchObject({ method: 'GET', body: '' });
  });
});
