import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import express, { type Request, type Response } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CLIENT_ADDRESS } from '#platform/http/request/client-origin.js';
import { DownloadSlots } from '../../../../src/features/install/download-slots.js';

describe('the slots of downloads', () => {
  let server: Server;
  let held: Response[];
  const sockets: Socket[] = [];
  beforeEach(async () => {
    held = [];
    const slots = new DownloadSlots();
    const app = express();
    app.set(CLIENT_ADDRESS, (request: Request) => request.get('x-forwarded-for'));
    app.use((request, response) => {
      if (!slots.take(request, response)) response.status(429).end('full');
      else held.push(response);
    });
    server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  /**
   * Sends requests on one connection, without waiting for the response to one before the next is
   * sent.
   */
  function pipelined(count: number, address = '10.0.0.1'): Socket {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${address}\r\n\r\n`.repeat(count));
    return socket;
  }
  const refused = async (address?: string) => {
    const socket = pipelined(1, address);
    const [text] = (await once(socket, 'data')) as [Buffer];
    return text.toString().split('\r\n')[0];
  };

  it('are free again after the end of a connection on which several requests wait', async () => {
    for (let round = 0; round < 20; round += 1) {
      const before = held.length;
      const socket = pipelined(8);
      await vi.waitFor(() => expect(held.length).toBe(before + 8), 90_000);
      const last = held.at(-1)!;
      socket.destroy();
      await vi.waitFor(() => expect(last.destroyed).toBe(true), 90_000);
    }
    pipelined(8);
    await vi.waitFor(() => expect(held.length).toBe(168), 90_000);
  });

  it('are eight for one address, beside those of others, and 64 in all', async () => {
    pipelined(8);
    await vi.waitFor(() => expect(held.length).toBe(8), 90_000);
    expect(await refused()).toBe('HTTP/1.1 429 Too Many Requests');
    for (let n = 2; n <= 8; n += 1) pipelined(8, `10.0.0.${n}`);
    await vi.waitFor(() => expect(held.length).toBe(64), 90_000);
    expect(await refused('10.0.0.9')).toBe('HTTP/1.1 429 Too Many Requests');
    held[0]?.end('the file');
    await vi.waitFor(() => expect(held[0]?.writableFinished).toBe(true), 90_000);
    pipelined(1, '10.0.0.9');
    await vi.waitFor(() => expect(held.length).toBe(65), 90_000);
  });
});
