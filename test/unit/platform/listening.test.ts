import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Pool } from 'pg';
import { expect, it } from 'vitest';
import { listenTo } from '../../../src/platform/database/queues/listening.js';
import type { DataSource } from '../../../src/platform/database/statements/typeorm.js';

it('a listener refuses another driver at once, because that looks like a lost connection later', () => {
  for (const driver of [{}, { master: {} }]) {
    const dataSource = { driver } as unknown as DataSource;
    expect(() => listenTo(dataSource, 'a_channel', () => undefined)).toThrow(TypeError);
  }
});

it('a listener stops while its connection waits for a server that does not answer', async () => {
  const silent = createServer((socket) => socket.on('error', () => undefined));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const pool = new Pool({ host: '127.0.0.1', port, user: 'svc' });
  const dataSource = { driver: { master: pool } } as unknown as DataSource;
  const listening = listenTo(dataSource, 'a_channel', () => undefined);
  const [socket] = (await once(silent, 'connection')) as [Socket];
  await expect(listening.stop()).resolves.toBeUndefined();
  socket.destroy();
  await once(silent.close(), 'close');
});

it('a listener that has stopped leaves no socket open to a server that does not answer', async () => {
  const silent = createServer({ allowHalfOpen: true });
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const pool = new Pool({ host: '127.0.0.1', port, user: 'svc' });
  const dataSource = { driver: { master: pool } } as unknown as DataSource;
  const listening = listenTo(dataSource, 'a_channel', () => undefined);
  const [socket] = (await once(silent, 'connection')) as [Socket];
  const refused = once(socket, 'error');
  socket.resume();
  await listening.stop();
  // A socket that only ended its own side would take the bytes. A destroyed one refuses them.
  const writing = setInterval(() => socket.write('.'), 20);
  await expect(refused).resolves.toMatchObject([
    { code: expect.stringMatching(/EPIPE|ECONNRESET/) },
  ]);
  clearInterval(writing);
  await once(silent.close(), 'close');
});
