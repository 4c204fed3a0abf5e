import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { StandInInstallation } from '@svc/stand-ins/github-state';
import { accessApi, addGroup, putRule } from '../../support/access-api.js';
import type { Client } from '../../support/client.js';
import {
  askToken,
  link,
  startGitHubApplication,
  type GitHubApplication,
} from '../../support/github.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { auditOf, count, rows } from '../../support/rows.js';
import { foundOrganization } from '../../support/scim-organization.js';

const DEV = 'dev@octo.example';

let running: GitHubApplication;
let admin: Client;
let dev: Client;
let devId: string;
/** The paths of the installations of `octo-org` and `second-org` in the API of access rules. */
let first: string;
let second: string;
beforeAll(async () => {
  running = await startGitHubApplication();
  const { github, organization, installation } = running;
  admin = organization.admin.client;
  const other = github.state.install('second-org', { repositories: ['hello'] });
  await link(github, organization.admin, other);
  ({ client: dev, id: devId } = await running.member(DEV));
  first = `/github_installation/${installation.id}`;
  second = `/github_installation/${other.id}`;
});
afterAll(() => running.close());
beforeEach(async () => {
  for (const path of [first, second]) await putRule(admin, path, { access: 'everyone' });
});

const minted = () => running.github.state.tokens.length;
const owners = async () => {
  const { json } = await dev.get('/v1/credentials/github/status');
  return (json.installations as { owner: string }[]).map(({ owner }) => owner);
};
const askedFor = async (owner?: string) => {
  const { status, json } = await askToken(dev, owner === undefined ? {} : { owner });
  return [status, json.code as string | undefined];
};

describe('a GitHub token, by the rules of the installations', () => {
  it('is refused with 404 for an owner that is not linked, as long as no rule exists', async () => {
    expect(await askedFor('third-org')).toEqual([404, 'not_found']);
    expect(await owners()).toEqual(['octo-org', 'second-org']);
  });

  it('is refused before GitHub mints one, and an unlinked owner is answered like one not assigned', async () => {
    await putRule(admin, first, { assignments: [] });
    const before = minted();
    const [refused, unlinked] = [
      await askToken(dev, { owner: 'octo-org' }),
      await askToken(dev, { owner: 'third-org' }),
    ];
    expect([refused.status, refused.json.code]).toEqual([403, 'not_assigned']);
    expect({ ...unlinked.json, instance: null }).toEqual({ ...refused.json, instance: null });
    expect(minted()).toBe(before);
    expect(await owners()).toEqual(['second-org']);
    // The user reaches one installation only, so that the request needs no `owner`.
    expect(await askedFor()).toEqual([200, undefined]);
    const events = (await auditOf(running.app.dataSource, DEV)).filter(
      ({ type }) => type === 'access_refused',
    );
    expect(events.slice(-2).map(({ details }) => details)).toEqual(
      ['octo-org', 'third-org'].map((name) => ({
        target: { kind: 'github_installation', name },
        rule: 'assignment',
      })),
    );
  });

  it('is given to an assigned person and to a member of an assigned group', async () => {
    await putRule(admin, first, { assignments: [{ user: devId }] });
    expect(await askedFor('octo-org')).toEqual([200, undefined]);
    const group = await addGroup(running.organization, 'Git people', [devId]);
    await putRule(admin, first, { assignments: [{ group }] });
    expect(await askedFor('octo-org')).toEqual([200, undefined]);
    await putRule(admin, second, { assignments: [] });
    expect(await askedFor()).toEqual([200, undefined]);
    await putRule(admin, first, { assignments: [] });
    expect(await askedFor()).toEqual([403, 'not_assigned']);
    expect(await owners()).toEqual([]);
  });

  it('asks for a touch that meets the conditions, before GitHub mints one', async () => {
    await putRule(admin, first, { access: 'everyone', conditions: { models: 'fips-only' } });
    const before = minted();
    expect(await askedFor('octo-org')).toEqual([401, 'insufficient_user_authentication']);
    expect(await askedFor('third-org')).toEqual([403, 'not_assigned']);
    expect(minted()).toBe(before);
    const touch = `jsonb_build_object(authenticator_id::text, jsonb_build_object(
      'at', extract(epoch FROM now()), 'uv', extract(epoch FROM now()), 'fips', true))`;
    await rows(
      running.app.dataSource,
      `UPDATE sessions SET touches = ${touch} WHERE user_id = $1 AND level = 'verified'`,
      [devId],
    );
    expect(await askedFor('octo-org')).toEqual([200, undefined]);
  });

  it('is refused and revoked if the rule changes after the look-up, while GitHub mints it', async () => {
    await putRule(admin, first, { assignments: [{ user: devId }] });
    const holder = running.app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [devId]);
    const before = minted();
    const attempt = askToken(dev, { owner: 'octo-org' });
    await untilWaiting(running.app.dataSource, 1);
    const change = putRule(admin, first, { assignments: [] });
    // Waits until the change has committed. Its response comes later, after the user's earlier
    // tokens have been ended.
    const assigned = 'access_assignments WHERE user_id = $1';
    await expect.poll(() => count(running.app.dataSource, assigned, [devId])).toBe(0);
    await holder.rollbackTransaction();
    await holder.release();
    expect((await change).status).toBe(200);
    const answer = await attempt;
    expect([answer.status, answer.json.code]).toEqual([403, 'not_assigned']);
    expect(minted()).toBe(before + 1);
    const token = running.github.state.tokens.at(-1)?.token ?? '';
    await expect.poll(() => running.github.state.liveToken(token)).toBeUndefined();
  });
});

describe('the rule of an installation, if the App is installed again at its account', () => {
  /** Installs the App once more at the account of an installation, as GitHub does: by a new id. */
  const installAgain = (earlier: StandInInstallation): StandInInstallation => {
    const { state } = running.github;
    const again = { ...earlier, id: state.newId() };
    state.installations.delete(earlier.id);
    state.installations.set(again.id, again);
    return again;
  };
  const unlink = ({ id }: StandInInstallation) =>
    admin.copy().send('DELETE', `/v1/credentials/github/installations/${id}`);

  it.each(['unlinked', 'still linked'])(
    'stays, without the assignments, if the earlier one is %s',
    async (before) => {
      const { github, organization } = running;
      const owner = `${before.replace(' ', '-')}-org`;
      const earlier = github.state.install(owner, { repositories: ['hello'] });
      await link(github, organization.admin, earlier);
      const conditions = { touch_within_seconds: 900, user_verification: 'required' };
      await putRule(admin, `/github_installation/${earlier.id}`, {
        conditions,
        assignments: [{ user: devId }],
      });
      if (before === 'unlinked') expect((await unlink(earlier)).status).toBe(204);
      const again = installAgain(earlier);
      expect((await link(github, organization.admin, again)).status).toBe(200);
      if (before !== 'unlinked') expect((await unlink(earlier)).status).toBe(204);
      const { json } = await accessApi(admin, 'GET', `/github_installation/${again.id}`);
      expect(json).toMatchObject({ access: 'assigned', conditions, assignments: [] });
      expect(await askedFor(owner)).toEqual([403, 'not_assigned']);
      await unlink(again);
    },
  );

  it.each(['unlinked', 'still linked'])(
    'stays if an admin closes it while the earlier one is unlinked or the new one linked: %s',
    async (before) => {
      const { app, github } = running;
      const browser = { client: admin.copy() };
      const owner = `closed-${before.replace(' ', '-')}-org`;
      const earlier = github.state.install(owner, { repositories: ['hello'] });
      await link(github, browser, earlier);
      const again = installAgain(earlier);
      const closing = app.dataSource.createQueryRunner();
      await closing.startTransaction();
      const closed = `UPDATE access_targets SET access = 'assigned' WHERE installation_id = $1`;
      await closing.query(closed, [earlier.id]);
      const meanwhile = before === 'unlinked' ? unlink(earlier) : link(github, browser, again);
      await untilWaiting(app.dataSource, 1);
      await closing.commitTransaction();
      await closing.release();
      await meanwhile;
      expect((await link(github, browser, again)).status).toBe(200);
      const { json } = await accessApi(admin, 'GET', `/github_installation/${again.id}`);
      expect(json).toMatchObject({ access: 'assigned', conditions: {}, assignments: [] });
      for (const each of [earlier, again]) await unlink(each);
    },
  );

  it('is no rule of the same account in another organization', async () => {
    const { app, github, organization } = running;
    const earlier = github.state.install('sold-org', { repositories: ['hello'] });
    await link(github, organization.admin, earlier);
    await putRule(admin, `/github_installation/${earlier.id}`, { assignments: [] });
    await unlink(earlier);
    const other = await foundOrganization(app, 'buyer.example');
    const again = installAgain(earlier);
    expect((await link(github, other.admin, again)).status).toBe(200);
    const path = `/github_installation/${again.id}`;
    const { json } = await accessApi(other.admin.client, 'GET', path);
    expect(json).toMatchObject({ access: 'everyone', conditions: {} });
  });
});
