import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { sshFingerprint } from '@svc/openssh';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';

const SERIALS = [1_763_683_200_000, 1_763_683_200_007];

requires(...HOST_PROGRAMS, 'wget', 'setpriv').describe(
  'the refresh program, run by the ExecStart of its unit',
  () => {
    let server: RevocationServer;
    let host: JoiningHost;
    let withWget: Record<string, string>;
    beforeAll(async () => {
      server = await RevocationServer.start();
      host = new JoiningHost(await freePort());
      const { status, said } = await host.run(server.script, host.joining);
      if (status !== 0) throw new Error(said);
      withWget = { PATH: host.pathWithout('curl') };
    });
    afterAll(() => {
      server.stop();
      host.remove();
    });
    beforeEach(async () => {
      server.publish(100, SERIALS);
      rmSync(host.list, { force: true });
      const { status, said } = await host.refresh();
      if (status !== 0) throw new Error(said);
    });
    afterEach(() => {
      server.answer = undefined;
    });

    /**
     * Returns the inode, the times and the bytes of the revocation list, and the file names beside
     * it.
     */
    const state = () => ({
      inode: statSync(host.list).ino,
      changed: statSync(host.list).mtimeMs,
      bytes: readFileSync(host.list, 'latin1'),
      names: readdirSync(join(host.etc, 'svc')).toSorted(),
    });

    it('replaces the list by a newer one in one step, readable for all', async () => {
      const before = state();
      const list = server.publish(101, [...SERIALS, 1_763_683_300_000]);
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      const after = state();
      expect(after).toMatchObject({ bytes: list.toString('latin1'), names: before.names });
      expect(after.inode).not.toBe(before.inode);
      expect(statSync(host.list).mode & 0o777).toBe(0o644);
    });

    it('needs no capability, since its unit has none', async () => {
      const list = server.publish(101, [...SERIALS, 1_763_683_300_000]);
      const none = ['--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];
      const program = join(host.sbin, 'svc-refresh-krl');
      const words = [
        program,
        `${server.baseUrl}/v1/credentials/ssh/krl`,
        host.list,
        host.authorities,
      ];
      expect(await ending('setpriv', [...none, ...words], '')).toEqual({ status: 0, said: '' });
      expect(readFileSync(host.list).equals(list)).toBe(true);
    });

    it('leaves a current list alone, and asks for no second copy of it', async () => {
      const before = state();
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      expect(server.requests.at(-1)).toBe('304 /v1/credentials/ssh/krl');
      expect(state()).toEqual(before);
    });

    it.each([
      ['cut off', (whole: Buffer) => whole.subarray(0, 50)],
      ['empty', () => Buffer.alloc(0)],
      ['garbage', () => Buffer.from('<html>')],
    ])('replaces a present list that is %s', async (_, damage) => {
      writeFileSync(host.list, damage(server.list));
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      expect(readFileSync(host.list).equals(server.list)).toBe(true);
    });

    const whole: RequestListener = (_request, response) => response.end(server.list);
    const answers: [string, RequestListener][] = [
      ['garbage', (_request, response) => response.end(Buffer.alloc(400, 7))],
      ['an empty body', (_request, response) => response.end()],
      ['no content', (_request, response) => response.writeHead(204).end()],
      ['500', (_request, response) => response.writeHead(500).end(server.list)],
      ['503', (_request, response) => response.writeHead(503).end('{}')],
      ['429', (_request, response) => response.writeHead(429, { 'retry-after': '1' }).end('{}')],
      ['404 with a list', (_request, response) => response.writeHead(404).end(server.list)],
      ['a page with 200', (_request, response) => response.end('<html>Please sign in</html>')],
      [
        'the magic and garbage',
        (_request, response) => response.end(`SSHKRL\n\0${'x'.repeat(60)}`),
      ],
      [
        'the list of another format',
        (_request, response) => {
          const other = Buffer.from(server.list);
          other.writeUInt32BE(2, 8);
          response.end(other);
        },
      ],
      ['a part of a list', (_request, response) => response.end(server.list.subarray(0, 90))],
      [
        'a list that breaks off',
        (_request, response) => {
          response.writeHead(200, { 'content-length': server.list.length });
          response.write(server.list.subarray(0, 50), () => response.destroy());
        },
      ],
      ['nothing at all', (request) => request.destroy()],
      [
        'a redirect to a list',
        (request, response) =>
          request.url === '/list'
            ? whole(request, response)
            : response.writeHead(302, { location: '/list' }).end(),
      ],
    ];
    it.each(answers)('keeps the list when the answer is %s, and fails', async (_, answer) => {
      const before = state();
      server.publish(101, [...SERIALS, 1_763_683_300_000]);
      server.answer = answer;
      for (const environment of [{}, withWget]) {
        const { status, said } = await host.refresh(environment);
        expect(status).toBe(1);
        expect(said).toMatch(/^svc-refresh-krl: [^\n]+\n$/); // one line for the journal
        expect(state()).toEqual(before);
      }
    });

    it.each([
      ['older', 99],
      ['older by far', 1],
    ])('keeps the list when the answer is an %s one, and fails', async (_, number) => {
      const before = state();
      server.publish(number);
      const { status, said } = await host.refresh();
      expect(status).toBe(1);
      expect(said).toContain(`older list (${number}, the present one is 100)`);
      expect(state()).toEqual(before);
    });

    it('compares the numbers of lists as numbers, up to their 64 bits', async () => {
      for (const number of [255, 256, 65_536, 4_294_967_296, 2 ** 53]) {
        server.publish(number, SERIALS);
        expect(await host.refresh()).toEqual({ status: 0, said: '' });
        expect(readFileSync(host.list).equals(server.list)).toBe(true);
      }
      server.list.writeBigUInt64BE(2n ** 64n - 1n, 12);
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      const before = state();
      server.publish(2 ** 53);
      expect(await host.refresh()).toMatchObject({ status: 1 });
      expect(state()).toEqual(before);
    });

    it('keeps the list when the answer is about another authority, and fails', async () => {
      const before = state();
      const first = server.authority;
      server.changeAuthority();
      server.publish(101, SERIALS);
      expect(await host.refresh()).toMatchObject({
        status: 1,
        said: expect.stringContaining('authority'),
      });
      expect(state()).toEqual(before);
      server.authority = first;
    });

    it('takes a list about a retired authority alone, and trusts that authority no more', async () => {
      const retired = server.authority;
      server.changeAuthority();
      const list = server.publish(102, [...SERIALS, 1_763_683_300_000], retired);
      const joined = await host.run(server.script, host.joining);
      expect(joined.said).not.toContain('could not be fetched');
      expect(joined.status).toBe(0);
      expect(readFileSync(host.authorities, 'utf8')).toBe(server.authorityLine);
      expect(state().bytes).toBe(list.toString('latin1'));
      const next = server.publish(103, [...SERIALS, 1_763_683_400_000], retired);
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      expect(state().bytes).toBe(next.toString('latin1'));
      server.authority = retired;
      server.publish(104, SERIALS);
      expect((await host.run(server.script, host.joining)).status).toBe(0);
    });

    it('takes a list about its authority and another one, and names the other one', async () => {
      const first = server.authority;
      server.changeAuthority();
      const other = server.authority;
      server.authority = first;
      const sections = [first, other].map((authority) => ({ authority, serials: SERIALS }));
      const list = server.publishSections(102, sections);
      const { status, said } = await host.refresh();
      expect(status).toBe(0);
      expect(said).toContain(`${sshFingerprint(other)}, which this host does not trust`);
      expect(said).not.toContain(sshFingerprint(first));
      expect(state().bytes).toBe(list.toString('latin1'));
    });

    it('keeps the list while the server is away, and fails', async () => {
      const before = state();
      const words = [join(host.sbin, 'svc-refresh-krl'), 'http://127.0.0.1:9/krl', host.list];
      const unit = join(host.units, 'svc-refresh-krl.service');
      const text = readFileSync(unit, 'utf8');
      writeFileSync(unit, `[Service]\nExecStart=${words.join(' ')}\n`);
      for (const environment of [{}, withWget]) {
        expect(await host.refresh(environment)).toMatchObject({ status: 1 });
      }
      expect(state()).toEqual(before);
      writeFileSync(unit, text);
    });

    it('takes a 304 for no answer where it has no list', async () => {
      rmSync(host.list);
      server.answer = (_, response) => response.writeHead(304).end();
      expect(await host.refresh()).toMatchObject({
        status: 1,
        said: expect.stringContaining('304'),
      });
      expect(readdirSync(join(host.etc, 'svc'))).not.toContain('revoked.krl');
    });

    it('never lets a slow answer replace the newer list of another run', async () => {
      const [older, newer] = [server.publish(101, SERIALS), server.publish(102, SERIALS)];
      let finish: (() => void) | undefined;
      const arrived = new Promise<void>((resolve) => {
        server.answer = (_, response) => {
          finish = () => response.end(older);
          resolve();
        };
      });
      const slow = host.refresh();
      await arrived;
      server.answer = undefined;
      const fast = host.refresh(); // waits until the slow run is over
      finish?.();
      expect(await Promise.all([slow, fast])).toMatchObject([{ status: 0 }, { status: 0 }]);
      expect(readFileSync(host.list).equals(newer)).toBe(true);
    });
  },
);
