import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SignedWebhook } from '@svc/stand-ins/github';
import { newAddress, type Answer } from '../../support/client.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { count, rows } from '../../support/rows.js';

const WEBHOOK = '/api/webhooks/github';

describe('POST /api/webhooks/github', () => {
  let running: GitHubApplication;
  beforeAll(async () => {
    running = await startGitHubApplication();
  });
  afterAll(() => running.close());
  beforeEach(() =>
    running.app.dataSource.query(
      "UPDATE github_installations SET suspended_at = NULL, changed_at = '-infinity'",
    ),
  );

  const payload = (action: string, more: object = {}) => {
    const { id, account } = running.installation;
    const installation = { id, account, repository_selection: 'all', ...more };
    return { action, installation, sender: { login: 'owner' } };
  };
  const send = (
    { body, headers }: SignedWebhook,
    more: Record<string, string> = {},
  ): Promise<Answer> =>
    running.app.client().send('POST', WEBHOOK, {
      body,
      address: newAddress(),
      headers: { ...headers, origin: '', ...more },
    });
  const signed = (action: string, more: object = {}, delivery?: string) =>
    running.github.webhook('installation', payload(action, more), delivery);
  const state = async () => ({
    installations: await rows(running.app.dataSource, 'SELECT * FROM github_installations'),
    deliveries: await count(running.app.dataSource, 'github_deliveries'),
    events: await count(running.app.dataSource, 'audit_events'),
  });
  const isSuspended = async () =>
    (await count(running.app.dataSource, 'github_installations WHERE suspended_at IS NOT NULL')) ===
    1;

  it('suspends and resumes the installation', async () => {
    expect((await send(signed('suspend'))).status).toBe(204);
    expect(await isSuspended()).toBe(true);
    const refused = await askToken(running.organization.admin.client);
    expect([refused.status, refused.json.code]).toEqual([403, 'github_suspended']);
    expect((await send(signed('unsuspend'))).status).toBe(204);
    expect((await askToken(running.organization.admin.client)).status).toBe(200);
  });

  it.each(['added', 'removed'])(
    'follows repositories that were %s, and a new name of the owner',
    async (action) => {
      const event = running.github.webhook('installation_repositories', {
        ...payload(action, { account: { ...running.installation.account, login: 'renamed' } }),
        repository_selection: 'selected',
        repositories_added: [],
        repositories_removed: [],
      });
      expect((await send(event)).status).toBe(204);
      const [row] = (await state()).installations;
      expect(row).toMatchObject({ owner: 'renamed', repository_selection: 'selected' });
      const back = { action: 'renamed', account: running.installation.account };
      expect((await send(running.github.webhook('installation_target', back))).status).toBe(204);
      expect((await state()).installations).toMatchObject([{ owner: 'octo-org' }]);
    },
  );

  it.each([
    ['wrong', { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }],
    ['missing', { 'x-hub-signature-256': '' }],
    ['of SHA-1', { 'x-hub-signature-256': '', 'x-hub-signature': 'sha1=00' }],
    ['in another case', { 'x-hub-signature-256': 'SHA256=00' }],
  ])('refuses a signature that is %s, and nothing changes', async (_, headers) => {
    const before = await state();
    const answer = await send(signed('suspend'), headers);
    expect([answer.status, answer.json.code]).toEqual([401, 'invalid_signature']);
    expect(await state()).toEqual(before);
  });

  it('refuses a body that was changed after it was signed, by one space', async () => {
    const before = await state();
    const { body, headers } = signed('suspend');
    expect((await send({ body: `${body} `, headers })).status).toBe(401);
    expect(await state()).toEqual(before);
  });

  it('refuses a body of 2 MiB with 413, however it is sent', async () => {
    const before = await state();
    const large = running.github.webhook('installation', {
      ...payload('suspend'),
      padding: 'x'.repeat(2 * 1024 * 1024),
    });
    expect((await send(large)).status).toBe(413);
    const chunked = await fetch(running.app.baseUrl + WEBHOOK, {
      method: 'POST',
      headers: { ...large.headers, 'x-forwarded-for': newAddress() },
      body: new Blob([large.body]).stream(),
      duplex: 'half',
    }).catch(() => undefined);
    expect([413, undefined]).toContain(chunked?.status);
    expect(await state()).toEqual(before);
  });

  it('takes a signed body of just under 1 MiB', async () => {
    const event = { ...payload('suspend'), padding: 'x'.repeat(1024 * 1024 - 1024) };
    expect((await send(running.github.webhook('installation', event))).status).toBe(204);
    expect(await isSuspended()).toBe(true);
  });

  it.each([
    ['a UUID', randomUUID()],
    ['no UUID', 'delivery 4711/~'],
    ['one character', '1'],
    ['128 characters', 'x'.repeat(128)],
  ])('ignores a delivery id that comes again: %s', async (_, delivery) => {
    const first = await state();
    expect((await send(signed('suspend', {}, delivery))).status).toBe(204);
    const before = await state();
    expect(before.deliveries - first.deliveries).toBe(1);
    expect((await send(signed('unsuspend', {}, delivery))).status).toBe(204);
    expect(await state()).toEqual(before);
    expect(await isSuspended()).toBe(true);
  });

  it('records a UUID as it is, in any case, and another id as the same UUID each time', async () => {
    const idOf = async (delivery: string) => {
      await rows(running.app.dataSource, 'DELETE FROM github_deliveries');
      expect((await send(signed('suspend', {}, delivery))).status).toBe(204);
      return rows(running.app.dataSource, 'SELECT id FROM github_deliveries');
    };
    const uuid = randomUUID();
    expect(await idOf(uuid.toUpperCase())).toEqual([{ id: uuid }]);
    // The first 16 bytes of the SHA-256 of "abc", with the version and variant bits of a UUID of
    // version 8 (RFC 9562 §5.8).
    expect(await idOf('abc')).toEqual([{ id: 'ba7816bf-8f01-8fea-8141-40de5dae2223' }]);
  });

  it('acts once on 20 parallel deliveries of one id', async () => {
    const event = signed('suspend', {}, randomUUID());
    const before = await state();
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(event)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(204));
    const after = await state();
    expect(after.deliveries - before.deliveries).toBe(1);
    expect(after.events - before.events).toBe(1);
  });

  it('leaves the id of a delivery free when its change fails', async () => {
    const { dataSource } = running.app;
    const delivery = randomUUID();
    await dataSource.query(`
      CREATE FUNCTION fail_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$`);
    await dataSource.query(`
      CREATE TRIGGER fail_for_the_test BEFORE UPDATE ON github_installations
      FOR EACH ROW EXECUTE FUNCTION fail_for_the_test()`);
    expect((await send(signed('suspend', {}, delivery))).status).toBe(500);
    await dataSource.query('DROP FUNCTION fail_for_the_test CASCADE');
    expect(await isSuspended()).toBe(false);
    expect((await send(signed('suspend', {}, delivery))).status).toBe(204);
    expect(await isSuspended()).toBe(true);
  });

  it('keeps the later state when two deliveries come in the wrong order', async () => {
    const later = '2026-11-22T10:00:01Z';
    expect((await send(signed('unsuspend', { updated_at: later }))).status).toBe(204);
    const earlier = signed('suspend', { updated_at: '2026-11-22T10:00:00Z' });
    expect((await send(earlier)).status).toBe(204);
    expect(await isSuspended()).toBe(false);
  });

  it('ignores events that it does not know, and installations that are not linked', async () => {
    const before = await state();
    const events = [
      running.github.webhook('push', { ref: 'refs/heads/main' }),
      running.github.webhook('ping', { zen: 'Keep it logically awesome.' }),
    ];
    for (const event of events) expect((await send(event)).status).toBe(204);
    expect(await state()).toEqual(before);
    const stranger = signed('suspend', { id: 987_654 });
    expect((await send(stranger)).status).toBe(204);
    expect((await state()).installations).toEqual(before.installations);
  });

  it.each([
    ['an enterprise, which has a slug in place of a login', { id: 40, slug: 'megacorp' }],
    ['an account that GitHub does not show', null],
  ])('ignores an installation of %s', async (_, account) => {
    const before = await state();
    expect((await send(signed('created', { id: 987_655, account }))).status).toBe(204);
    expect(await state()).toEqual(before);
  });

  it('refuses what is signed and still no event', async () => {
    const { github } = running;
    const answers = [
      await send(github.webhook('installation', { action: 'suspend' })),
      await send(signed('suspend'), { 'x-github-delivery': '' }),
      await send(signed('suspend', {}, 'x'.repeat(129))),
      await send(signed('suspend', {}, 'caf\u00e9')),
      await send(signed('suspend'), { 'content-type': 'text/plain' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 415]);
  });

  it('removes a deleted installation with its tokens, which GitHub has ended', async () => {
    const { dataSource } = running.app;
    expect((await askToken(running.organization.admin.client)).status).toBe(200);
    expect(await count(dataSource, 'github_tokens')).toBeGreaterThan(0);
    expect((await send(signed('deleted'))).status).toBe(204);
    expect(await count(dataSource, 'github_tokens')).toBe(0);
    expect(await count(dataSource, 'github_installations')).toBe(0);
    expect((await askToken(running.organization.admin.client)).status).toBe(404);
  });
});
