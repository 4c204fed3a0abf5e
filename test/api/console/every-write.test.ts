import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  RoutePolicies,
  type CompiledRoute,
} from '../../../src/platform/http/routing/route-policies.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { addMember } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

const ADMIN = 'ada@every-write.example';
const ABSENT = '00000000-0000-7000-8000-000000000000';
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Tables that a refused request may change: rate limits, and the record of the denial itself. */
const APART = new Set(['rate_limits', 'audit_events']);

describe('every write of the service', () => {
  let app: TestApp;
  let browser: Client;
  let member: string;
  let routes: readonly CompiledRoute[];
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: browser } = await app.enrolled(ADMIN));
    member = await addMember(app, ADMIN, 'grace@every-write.example');
    routes = app.nest
      .get(RoutePolicies)
      .routes.filter(
        ({ method, policy }) => WRITES.has(method) && policy.auth.session !== 'provisioner',
      );
  });
  afterAll(() => app.close());

  /** A digest of every table, so that a change of any row is seen. */
  async function database(): Promise<Record<string, string>> {
    const tables = await rows<{ name: string }>(
      app.dataSource,
      `SELECT relname AS name FROM pg_class
       WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace ORDER BY 1`,
    );
    const digests: Record<string, string> = {};
    for (const { name } of tables.filter((table) => !APART.has(table.name))) {
      const [row] = await rows<{ digest: string }>(
        app.dataSource,
        `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS digest FROM "${name}" t`,
      );
      digests[name] = row?.digest ?? '';
    }
    return digests;
  }

  /** The path of a route: members are a real member, and every other parameter is an id that nothing has. */
  const pathOf = ({ template }: CompiledRoute) =>
    template.replace('members/:id', `members/${member}`).replaceAll(/:\w+/g, ABSENT);

  /** Sends a write to each route with the same headers, and returns each status with the code of the problem. */
  async function sendAll(
    to: readonly CompiledRoute[],
    headers: Record<string, string>,
  ): Promise<Record<string, string>> {
    const answers: Record<string, string> = {};
    for (const route of to) {
      const options = { address: newAddress(), headers };
      const body = route.policy.body.kind === 'json' ? { body: {} } : {};
      const answer = await browser.send(route.method, pathOf(route), { ...options, ...body });
      const code = (answer.json as { code?: string } | undefined)?.code;
      answers[`${route.method} ${route.template}`] = [answer.status, code].join(' ').trim();
    }
    return answers;
  }

  const all = (of: readonly CompiledRoute[], answer: string) =>
    Object.fromEntries(of.map(({ method, template }) => [`${method} ${template}`, answer]));
  const ofApi = ({ template }: CompiledRoute) => /^\/(?:api\/)?v1\//.test(template);
  const verified = () => routes.filter(({ policy }) => policy.auth.session === 'verified');

  it('refuses another origin and a missing one on every API route that reads the cookie', async () => {
    const before = await database();
    const checked = routes.filter((route) => ofApi(route) && route.policy.auth.session !== 'none');
    expect(checked.length).toBeGreaterThan(25);
    for (const origin of ['https://evil.example', 'null', '']) {
      expect(await sendAll(checked, { origin })).toEqual(all(checked, '403 invalid_origin'));
    }
    expect(await database()).toEqual(before);
  });

  it('refuses them on every page route too', async () => {
    const before = await database();
    const checked = routes.filter((route) => !ofApi(route) && route.policy.auth.origin !== 'any');
    expect(checked.length).toBeGreaterThan(8);
    for (const origin of ['https://evil.example', 'null', '']) {
      const answers = await sendAll(checked, { origin });
      expect(Object.values(answers).map((answer) => answer.slice(0, 3))).toEqual(
        checked.map(() => '403'),
      );
    }
    expect(await database()).toEqual(before);
  });

  it('refuses the write of a page that was made for another session', async () => {
    const before = await database();
    expect(await sendAll(verified(), { 'svc-session': ABSENT })).toEqual(
      all(verified(), '409 stale_page'),
    );
    expect(await database()).toEqual(before);
  });

  it('refuses every write that demands a recent touch without one', async () => {
    const checked = verified().filter(({ policy }) => policy.auth.touchedWithinSeconds);
    expect(checked.length).toBeGreaterThan(15);
    await touchedAgo(app, ADMIN, 301);
    const before = await database();
    expect(await sendAll(checked, {})).toEqual(
      all(checked, '401 insufficient_user_authentication'),
    );
    expect(await database()).toEqual(before);
    await touchedAgo(app, ADMIN, 0);
  });

  it('demands a recent touch for every write of an admin but the deletion of a SCIM token', () => {
    const without = routes.filter(
      ({ template, policy }) =>
        template.startsWith('/api/v1/org') && !policy.auth.touchedWithinSeconds,
    );
    expect(without.map(({ method, template }) => `${method} ${template}`)).toEqual([
      'DELETE /api/v1/org/scim-tokens/:id',
    ]);
  });

  it('refuses every write of an admin who was demoted while the page was open', async () => {
    const asAdmin = await database();
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = false WHERE email = $1', [ADMIN]);
    expect(await database()).not.toEqual(asAdmin); // the digests see a change of one row
    const checked = verified().filter(({ policy }) => policy.auth.scope === 'svc:admin');
    const before = await database();
    expect(await sendAll(checked, {})).toEqual(all(checked, '403 admin_required'));
    expect(await database()).toEqual(before);
  });
});
