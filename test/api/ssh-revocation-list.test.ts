import { createHash, randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RevocationList } from '../../src/domain/ssh/revocation-list/revocation-list.service.js';
import { deprovision } from '../support/deprovisioning.js';
import { statementText } from '../support/statement-text.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

/** The number of certificates on a long list. */
const MANY = atScale({ small: 4_000, full: 100_000 });

const KRL = '/v1/credentials/ssh/krl';
const JSON_TYPE = 'application/json';

/** `app` and `replica` are two instances of the service on one database, each with its cache. */
describe('GET /v1/credentials/ssh/krl', () => {
  let database: TestDatabase;
  let app: TestApp;
  let replica: TestApp;

  beforeAll(async () => {
    database = await createTestDatabase();
    app = await startTestApp({ database });
    replica = await startTestApp({
      database,
      environment: { SVC_SSH_CA_KEY_PATH: app.config.ssh.caKeyPath },
    });
  });
  afterAll(async () => {
    await replica.close();
    await app.close();
    await database.drop();
  });
  // Deletes all certificates, because the tests use serials again, which the service never does.
  beforeEach(() => app.dataSource.query('TRUNCATE ssh_certificates, ssh_revoked_signatures'));

  const get = async (accept = '*/*', headers: Record<string, string> = {}, of = app) => {
    const answer = await fetch(`${of.baseUrl}${KRL}`, {
      headers: { accept, 'x-forwarded-for': newAddress(), ...headers },
    });
    return { status: answer.status, headers: answer.headers, body: await bytesOf(answer) };
  };
  const json = async (of = app) => {
    const { body } = await get(JSON_TYPE, {}, of);
    return JSON.parse(body.toString()) as {
      revoked_serials: string[];
      total: number;
      generated_at: string;
    };
  };
  const numberOf = (krl: Buffer) => krl.readBigUInt64BE(12);
  const dateOf = (krl: Buffer) => Number(krl.readBigUInt64BE(20)) * 1000;

  /**
   * Inserts `count` certificates with consecutive serials from `first` on. They expire in `endIn`
   * minutes.
   */
  const certificates = (first: number, { count = 1, endIn = 60, revoked = true } = {}) =>
    app.dataSource.query(
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
         valid_after, valid_before, revoked_at, revoke_reason, revoked_by)
       SELECT $1::bigint + i, $2, $2, 'k', '{p}', 'f', (SELECT fingerprint FROM ssh_authorities ORDER BY signs_since LIMIT 1),
         now() - interval '9 hours',
         now() + make_interval(mins => $4), r.at, r.because, r.because
       FROM generate_series(0, $3::int - 1) i,
         (SELECT CASE WHEN $5 THEN now() END AS at, CASE WHEN $5 THEN 'test' END AS because) r`,
      [first, randomUUID(), count, endIn, revoked],
    );
  const revoke = (serial: number, on: Pick<EntityManager, 'query'> = app.dataSource) =>
    on.query(
      "UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'test', revoked_by = 'test' WHERE serial = $1",
      [serial],
    );

  it('is a list for sshd, for every client, unless the client accepts JSON', async () => {
    await certificates(1_000);
    for (const accept of [
      '*/*',
      'application/octet-stream',
      'text/html',
      '*/*;q=0.5, text/plain',
    ]) {
      const { status, headers, body } = await get(accept);
      expect([accept, status, headers.get('content-type')]).toEqual([
        accept,
        200,
        'application/octet-stream',
      ]);
      expect(body.subarray(0, 8).toString('latin1')).toBe('SSHKRL\n\0');
      expect(headers.get('vary')).toContain('Accept');
    }
  });

  it('names the authority whose certificates are issued', async () => {
    await certificates(1_000);
    const [, key = ''] = (await app.client().get('/v1/credentials/ssh/ca')).text.split(' ');
    const { body } = await get();
    expect(body.includes(Buffer.from(key, 'base64'))).toBe(true);
    expect(body.includes('ssh-ca@localhost')).toBe(true);
  });

  /**
   * Builds the list five times. Returns the first value, and the shortest time in milliseconds,
   * because other tests use the machine too.
   */
  async function soonest<T>(ask: () => Promise<T>): Promise<{ value: T; milliseconds: number }> {
    const values: T[] = [];
    const times: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      // makes the stored list outdated without a new certificate
      await app.dataSource.query("UPDATE ssh_revocation_list SET digest = ''");
      const begun = performance.now();
      values.push(await ask());
      times.push(performance.now() - begun);
    }
    return { value: values[0] as T, milliseconds: Math.min(...times) };
  }

  it('exists while no certificate is revoked, and is never empty: sshd would accept every certificate', async () => {
    await certificates(1_000, { revoked: false });
    const { status, body } = await get();
    expect([status, body.length]).toEqual([200, 44 + 'ssh-ca@localhost'.length]);
    expect(await json()).toMatchObject({ revoked_serials: [], total: 0 });
  });

  it('is JSON on request: the serials in order, as decimal strings', async () => {
    await certificates(9_000);
    await certificates(1_763_683_200_001);
    await certificates(10_000);
    await certificates(1, { revoked: false });
    const { headers, body } = await get(JSON_TYPE);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    const list = JSON.parse(body.toString());
    expect(list).toEqual({
      revoked_serials: ['9000', '10000', '1763683200001'],
      revoked_ranges: [],
      total: 3,
      generated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/),
    });
    expect(Date.parse(list.generated_at)).toBe(dateOf((await get()).body));
  });

  it('contains every earlier revocation, on every replica', async () => {
    await certificates(1_000, { revoked: false });
    expect((await json()).total).toBe(0);
    await revoke(1_000);
    expect((await json(replica)).revoked_serials).toEqual(['1000']);
    expect((await json()).revoked_serials).toEqual(['1000']);
  });

  it('contains revocations that commit late, and none that was rolled back', async () => {
    for (const serial of [1_000, 2_000, 3_000]) await certificates(serial, { revoked: false });
    const [early, late, undone] = [0, 1, 2].map(() => app.dataSource.createQueryRunner());
    const onBoth = async () => {
      const lists = await Promise.all([get(), get('*/*', {}, replica)]);
      expect(lists[0].body.equals(lists[1].body)).toBe(true);
      return { number: numberOf(lists[0].body), serials: (await json(replica)).revoked_serials };
    };
    try {
      await early?.startTransaction();
      await revoke(1_000, early?.manager);
      await undone?.startTransaction();
      await revoke(3_000, undone?.manager);
      await late?.startTransaction();
      await revoke(2_000, late?.manager);
      const before = await onBoth();
      expect(before.serials).toEqual([]);

      await late?.commitTransaction();
      const first = await onBoth();
      expect(first.serials).toEqual(['2000']);
      expect(first.number).toBeGreaterThan(before.number);

      await undone?.rollbackTransaction();
      expect(await onBoth()).toEqual(first);

      await early?.commitTransaction();
      const second = await onBoth();
      expect(second.serials).toEqual(['1000', '2000']);
      expect(second.number).toBeGreaterThan(first.number);
    } finally {
      for (const runner of [early, late, undone]) await runner?.release();
    }
  });

  it('differs from another list of as many serials, when one drops out as one is revoked', async () => {
    await certificates(1_000);
    await certificates(2_000, { revoked: false });
    const { headers } = await get();
    expect((await json()).revoked_serials).toEqual(['1000']);
    await app.dataSource.transaction(async (tx) => {
      await revoke(2_000, tx);
      await tx.query(
        "UPDATE ssh_certificates SET valid_before = now() - interval '2 hours' WHERE serial = 1000",
      );
    });
    const known = { 'if-none-match': headers.get('etag') ?? '' };
    expect((await get('*/*', known)).status).toBe(200);
    expect((await json()).revoked_serials).toEqual(['2000']);
  });

  it.each([2_047, 2_048, 2_049, 4_096, 5_000])(
    'contains each of %i serials, in any order of expiry',
    async (count) => {
      await certificates(1_000, { count });
      await app.dataSource.query(
        "UPDATE ssh_certificates SET valid_before = now() + (serial * 7919 % 3600) * interval '1 second'",
      );
      const serials = Array.from({ length: count }, (_, index) => String(1_000 + index));
      expect((await json()).revoked_serials).toEqual(serials);
    },
  );

  it.each([
    ['is valid', 10, ['1000']],
    ['expired 59 minutes ago', -59, ['1000']],
    ['expired 61 minutes ago', -61, []],
  ])(
    'has a revoked certificate until an hour after its expiry: one that %s',
    async (_, endIn, serials) => {
      await certificates(1_000, { endIn });
      expect((await json()).revoked_serials).toEqual(serials);
    },
  );

  it('changes when a certificate drops out', async () => {
    await certificates(1_000, { endIn: -59 });
    const first = (await get()).body;
    await app.dataSource.query(
      "UPDATE ssh_certificates SET valid_before = now() - interval '60 minutes 1 second'",
    );
    const second = (await get()).body;
    expect(second.length).toBeLessThan(first.length);
    expect(numberOf(second)).toBeGreaterThan(numberOf(first));
  });

  it('stays identical in every byte while nothing changes, on every replica', async () => {
    await certificates(1_000, { count: 50 });
    const first = await get();
    await certificates(5_000, { revoked: false });
    const second = () =>
      app.dataSource.query<unknown[]>("SELECT date_trunc('second', clock_timestamp()) AS at");
    const before = await second();
    await expect.poll(second).not.toEqual(before);
    for (const of of [app, replica]) {
      const again = await get('*/*', {}, of);
      expect(again.body.equals(first.body)).toBe(true);
      expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    }
  });

  it.each(['*/*', JSON_TYPE])(
    'has a strong ETag, the SHA-256 of %s, and answers 304',
    async (accept) => {
      await certificates(1_000);
      const { headers, body } = await get(accept);
      const etag = headers.get('etag') ?? '';
      expect(etag).toBe(`"${createHash('sha256').update(body).digest('hex')}"`);

      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const answer = await get(accept, { 'if-none-match': known });
        expect([known, answer.status, answer.body.length]).toEqual([known, 304, 0]);
        expect(answer.headers.get('etag')).toBe(etag);
        expect(answer.headers.get('vary')).toContain('Accept');
      }
      expect((await get(accept, { 'if-none-match': '"other"' })).status).toBe(200);
      const otherForm = accept === JSON_TYPE ? '*/*' : JSON_TYPE;
      expect((await get(otherForm, { 'if-none-match': etag })).status).toBe(200);

      await certificates(2_000);
      const changed = await get(accept, { 'if-none-match': etag });
      expect([changed.status, changed.headers.get('etag') === etag]).toEqual([200, false]);
    },
  );

  it('has a number that only grows: milliseconds of the clock, and more when the clock goes back', async () => {
    const before = BigInt(Date.now());
    await certificates(1_000);
    const first = numberOf((await get()).body);
    expect(first).toBeGreaterThanOrEqual(before);
    expect(first).toBeLessThanOrEqual(BigInt(Date.now()));

    const ahead = Date.now() + 86_400_000;
    await app.dataSource.query('UPDATE ssh_revocation_list SET number = $1', [ahead]);
    await certificates(1_001);
    expect(numberOf((await get()).body)).toBe(BigInt(ahead) + 1n);

    // Sets an old number, as a restored backup would. The next number follows the clock again.
    await app.dataSource.query("UPDATE ssh_revocation_list SET number = 5, digest = ''");
    const restored = numberOf((await get()).body);
    expect(restored).toBeGreaterThanOrEqual(first);
  });

  it('is published once for twenty requests at once, and never an older set under a later number', async () => {
    for (let round = 0; round < 5; round += 1) {
      await certificates(1_000 + round);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => get('*/*', {}, index % 2 === 0 ? app : replica)),
      );
      expect(new Set(answers.map(({ headers }) => headers.get('etag'))).size).toBe(1);
    }
  });

  it('never goes back while certificates are revoked during publication', async () => {
    const seen = new Map<bigint, string>();
    const done = new AbortController();
    const poll = async (of: TestApp) => {
      let last = { number: 0n, length: 0 };
      while (!done.signal.aborted) {
        const { body } = await get('*/*', {}, of);
        const number = numberOf(body);
        expect(number).toBeGreaterThanOrEqual(last.number);
        // the list only grows, because scattered serials cannot be joined into ranges
        expect(body.length).toBeGreaterThanOrEqual(last.length);
        const digest = createHash('sha256').update(body).digest('hex');
        expect(seen.get(number) ?? digest).toBe(digest);
        seen.set(number, digest);
        last = { number, length: body.length };
      }
    };
    const polls = [poll(app), poll(replica), poll(app), poll(replica)];
    for (let index = 1; index <= 40; index += 1) {
      await certificates(1_000_000 * index);
      // Waits now and then, so that even slow clients see some of the lists.
      if (index % 5 === 0) await expect.poll(() => seen.size).toBeGreaterThanOrEqual(index / 5);
    }
    done.abort();
    await Promise.all(polls);
    expect((await json()).total).toBe(40);
  });

  it('is read in one statement while nothing changed, which reads no serials', async () => {
    await certificates(1_000, { count: 5_000 });
    await get();
    const statements = spyOnStatements(app);
    const { body } = await get();
    expect(numberOf(body)).toBeGreaterThan(0n);
    expect(statements.sent()).toHaveLength(1);
    expect(statements.rows()).toEqual([expect.objectContaining({ serials: null })]);
    statements.stop();
  });

  it('is read once for all requests before the statement began', async () => {
    await certificates(1_000);
    await get();
    const statements = spyOnStatements(app);
    const revocations = app.nest.get(RevocationList, { strict: false });
    const lists = await Promise.all(Array.from({ length: 20 }, () => revocations.list()));
    expect(statements.sent()).toHaveLength(1);
    expect(new Set(lists).size).toBe(1);
    statements.stop();
  });

  it('of 100,000 certificates is built in less than a second, in any order of serials', async () => {
    await certificates(1_763_683_200_000, { count: MANY });
    const inARow = await soonest(() => get());
    expect(inARow.value.body).toHaveLength(129 + 'ssh-ca@localhost'.length);
    expect(inARow.milliseconds).toBeLessThan(1_000);

    await app.dataSource.query('UPDATE ssh_certificates SET serial = serial * 1009');
    const scattered = await soonest(() => get());
    expect(scattered.value.body).toHaveLength(8 * MANY + 113 + 'ssh-ca@localhost'.length);
    expect(scattered.milliseconds).toBeLessThan(1_000);
  });

  it('is read from an index alone, in its order, without sorting 100,000 serials', async () => {
    await certificates(1_763_683_200_000, { count: MANY / 2, revoked: false });
    await certificates(1_763_683_250_000, { count: MANY });
    await app.dataSource.query('VACUUM ANALYZE ssh_certificates');
    const statements = spyOnStatements(app);
    await get();
    statements.stop();
    const [first] = statements.sent();
    const explained = `EXPLAIN ${statementText(first)}`;
    const plan = await rows(app.dataSource, explained, [null, 16_384, 16_384]);
    const text = JSON.stringify(plan);
    expect(text).toContain('Index Only Scan using ssh_certificates_revocation_order');
    const sorted = text.match(/Sort Key: [^"]*/g) ?? [];
    // the plan sorts authorities and joined ranges, but no serials
    expect(sorted.filter((key) => /\bserial|valid_before/.test(key))).toEqual([]);
  });

  it('has each serial under its own authority, and one of an unknown authority under the oldest', async () => {
    const [first, second] = ['first', 'second'].map((name) => Buffer.from(`key ${name}`)) as [
      Buffer,
      Buffer,
    ];
    await app.dataSource.query(
      `INSERT INTO ssh_authorities (fingerprint, public_key, published_at) VALUES
         ('second', $2, '2025-02-01'), ('first', $1, '2025-01-01'), ('unused', 'key unused', '2025-03-01')`,
      [first, second],
    );
    try {
      for (const serial of [1_000, 2_000_000, 3_000_000, 4_000_000]) await certificates(serial);
      for (const [serial, of] of [
        [1_000, 'first'],
        [2_000_000, 'second'],
        [3_000_000, 'unknown'],
      ] as const) {
        await app.dataSource.query(
          'UPDATE ssh_certificates SET ca_fingerprint = $2 WHERE serial = $1',
          [serial, of],
        );
      }
      const { body } = await get();
      const sections = authoritiesOf(body);
      expect(sections.size).toBe(3);
      expect(sections.get('key first')).toEqual([1_000, 3_000_000]);
      expect(sections.get('key second')).toEqual([2_000_000]);
      expect([...sections.values()]).toContainEqual([4_000_000]);
      expect((await get('*/*', {}, replica)).body.equals(body)).toBe(true);
      expect((await json()).revoked_serials).toEqual(['1000', '2000000', '3000000', '4000000']);
    } finally {
      await app.dataSource.query(
        "DELETE FROM ssh_authorities WHERE fingerprint IN ('first', 'second', 'unused')",
      );
    }
  });

  it('contains a certificate as soon as its user is deleted', async () => {
    const { client } = await app.enrolled('ada@krl.example');
    const { serial } = (
      await client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() })
    ).json;
    expect((await json()).revoked_serials).not.toContain(serial);
    const [person] = await rows<{ id: string }>(
      app.dataSource,
      "SELECT id FROM users WHERE email = 'ada@krl.example'",
    );
    await app.dataSource.transaction((tx) =>
      deprovision(app).remove(tx, {
        userId: person?.id ?? '',
        reason: 'user deleted by SCIM',
        revokedBy: 'scim',
        audit: {
          type: 'scim_operation',
          actorId: null,
          origin: { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' },
          details: {},
        },
      }),
    );
    expect((await json()).revoked_serials).toEqual([serial]);
    expect((await client.get(`${KRL}/${serial}`)).json.revoked).toBe(true);
  });

  it('has the headers of the general tier, and allows no other method', async () => {
    const client = app.client();
    const answer = await client.get(KRL);
    expect(answer.headers.get('x-ratelimit-limit')).toBe('20');
    expect(answer.headers.get('cache-control')).toBe('no-cache, no-store, must-revalidate');
    const head = await client.send('HEAD', KRL);
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('etag')).toBe(answer.headers.get('etag'));
    const post = await client.post(KRL, {});
    expect([post.status, post.json.code]).toEqual([405, 'method_not_allowed']);
    expect(post.headers.get('allow')).toContain('GET');
  });

  it('is 429 as a problem document when it is requested too often, without a list', async () => {
    const client = app.client();
    const answers = await Promise.all(Array.from({ length: 30 }, () => client.get(KRL)));
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get('content-type')).toContain('application/problem+json');
    expect(refused?.json.code).toBe('rate_limited');
  });

  describe('the status of one serial', () => {
    let client: Client;
    beforeEach(() => {
      client = app.client();
    });

    it.each([
      ['revoked', 1_000, { revoked: true }, true],
      ['not revoked', 1_000, { revoked: false }, false],
      ['revoked, and expired long ago', 1_000, { revoked: true, endIn: -480 }, true],
    ])('is %s', async (_, serial, options, revoked) => {
      await certificates(serial, options);
      const before = Date.now();
      const answer = await client.get(`${KRL}/${serial}`);
      expect([answer.status, answer.json]).toEqual([
        200,
        { serial: String(serial), revoked, checked_at: expect.stringMatching(/Z$/) },
      ]);
      expect(Date.parse(answer.json.checked_at)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(answer.json.checked_at)).toBeLessThanOrEqual(Date.now());
    });

    it('follows a revocation at once', async () => {
      await certificates(1_000, { revoked: false });
      expect((await client.get(`${KRL}/1000`)).json.revoked).toBe(false);
      await revoke(1_000);
      expect((await client.get(`${KRL}/1000`)).json.revoked).toBe(true);
    });

    it.each(['0', '7', '9007199254740992', '9223372036854775808', '18446744073709551615'])(
      '%s, which was never issued, is not revoked, and looks like any other',
      async (serial) => {
        const { status, json: body } = await client.get(`${KRL}/${serial}`);
        expect([status, body]).toEqual([
          200,
          { serial, revoked: false, checked_at: expect.any(String) },
        ]);
      },
    );

    it.each([
      'x',
      '-1',
      '1.5',
      '1e3',
      '0x10',
      '007',
      '18446744073709551616',
      '99999999999999999999999',
      '%20',
      '1%3b',
      '１',
    ])('%s is 400 as a malformed serial', async (serial) => {
      const answer = await client.get(`${KRL}/${serial}`);
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(answer.json.detail).toMatch(/^serial: must be/);
    });
  });

  it('keeps one row for every caller', async () => {
    expect(await rows(app.dataSource, 'SELECT only_row FROM ssh_revocation_list')).toHaveLength(1);
  });
});

async function bytesOf(answer: Response): Promise<Buffer> {
  return Buffer.from(await answer.arrayBuffer());
}

/**
 * Records the statements on connections that read the list, and their rows. Statements of
 * background workers on other connections are left out.
 */
function spyOnStatements({ dataSource }: TestApp) {
  const original = dataSource.createQueryRunner.bind(dataSource);
  const connections: unknown[][] = [];
  const answers: unknown[] = [];
  dataSource.createQueryRunner = (...args) => {
    const runner = original(...args);
    const query = runner.query.bind(runner);
    const texts: unknown[] = [];
    connections.push(texts);
    runner.query = async (...rest: Parameters<typeof query>) => {
      texts.push(rest[0]);
      const answer = await query(...rest);
      answers.push(...((answer as { records?: unknown[] }).records ?? []));
      return answer;
    };
    return runner;
  };
  return {
    sent: () => connections.filter((texts) => JSON.stringify(texts).includes('digest')).flat(),
    rows: () => answers.filter((row) => /"digest"/.test(JSON.stringify(row))),
    stop: () => {
      dataSource.createQueryRunner = original;
    },
  };
}

/**
 * Parses a short list (OpenSSH PROTOCOL.krl). Returns the serials of each CA key, from its lists
 * and ranges.
 */
function authoritiesOf(krl: Buffer): Map<string, number[]> {
  const sections = new Map<string, number[]>();
  let at = 44 + krl.readUInt32BE(40);
  while (at < krl.length) {
    const end = at + 5 + krl.readUInt32BE(at + 1);
    const keyEnd = at + 9 + krl.readUInt32BE(at + 5);
    const serials: number[] = [];
    for (let part = keyEnd + 4; part < end;) {
      const content = krl.subarray(part + 5, part + 5 + krl.readUInt32BE(part + 1));
      const numbers = Array.from({ length: content.length / 8 }, (_, index) =>
        Number(content.readBigUInt64BE(8 * index)),
      );
      const [low = 0, high = 0] = numbers;
      if (krl[part] === 0x21) for (let one = low; one <= high; one += 1) serials.push(one);
      else if (krl[part] === 0x20) serials.push(...numbers);
      else throw new Error('a bitmap');
      part += 5 + content.length;
    }
    sections.set(krl.toString('latin1', at + 9, keyEnd), serials);
    at = end;
  }
  return sections;
}
