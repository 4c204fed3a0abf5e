import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { HttpClient } from '../src/scenario/http-client.js';

describe('a download of the demo', () => {
  const silent = createServer();
  afterEach(() => stopServer(silent));

  it('ends with its signal, also if no answer comes', async () => {
    const port = await listenOnLoopback(silent);
    const ending = new AbortController();
    const arrived = new Promise((resolve) => silent.once('request', resolve));
    const download = new HttpClient(`http://127.0.0.1:${port}`).download('/krl', ending.signal);
    await arrived;
    ending.abort();
    await expect(download).rejects.toMatchObject({ name: 'AbortError' });
  });
});
