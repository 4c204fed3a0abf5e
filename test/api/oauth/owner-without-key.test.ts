import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { postForm } from '../../support/oauth-flow.js';
import { orgApi } from '../../support/org-api.js';
import { enrollWith, passGround, signedIn, type PassGround } from '../../support/passes.js';
import { count } from '../../support/rows.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const SERVICE = {
  redirect_uris: [],
  response_types: [],
  grant_types: ['client_credentials'],
  token_endpoint_auth_method: 'client_secret_post',
};

let grounds = 0;

/** Registers an application of bob that gets tokens by client credentials, and gets one. */
async function serviceOfBob() {
  grounds += 1;
  const the = await passGround(app, `owner-${grounds}.example`);
  const { clientId, clientSecret } = await addApplication(app, SERVICE, {
    owner: `bob@${the.domain}`,
  });
  const service = { client_id: clientId, client_secret: clientSecret };
  const ask = () => postForm(app, '/oauth/token', { grant_type: 'client_credentials', ...service });
  const { access_token: token } = (await ask()).json;
  const isActive = async () =>
    (await postForm(app, '/oauth/introspect', { token, ...service })).json.active as boolean;
  expect(await isActive()).toBe(true);
  return { ...the, ask, isActive, clientId };
}

/**
 * Removes all keys of bob by an action of an admin. Returns the re-enrollment pass if the action
 * gives one.
 */
async function take({ ada, ids }: PassGround, act: string): Promise<string | undefined> {
  const answer = await orgApi(ada, 'POST', `/members/${ids.bob}/${act}`);
  expect(answer.status).toBeLessThan(300);
  expect(answer.json.ended).toMatchObject({ keys: 1, tokens: 1 });
  return answer.json.pass as string | undefined;
}

describe('an application of a user who has no key any more', () => {
  it.each(['revoke-credentials', 'enrollment-passes'])(
    'after %s loses its tokens, and gets none until the user has enrolled a key',
    async (act) => {
      const the = await serviceOfBob();
      const pass = await take(the, act);
      expect(await the.isActive()).toBe(false);
      const refused = await the.ask();
      expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
      const browser = await signedIn(app, `bob@${the.domain}`);
      expect((await enrollWith(app, browser, app.newKey(), pass)).status).toBe(200);
      expect((await the.ask()).status).toBe(200);
    },
  );

  it('gets no token by a request that waited while the keys ended', async () => {
    const the = await serviceOfBob();
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [the.ids.bob]);
    const asked = the.ask();
    await untilWaiting(app.dataSource, 1);
    await holder.query('DELETE FROM authenticators WHERE user_id = $1', [the.ids.bob]);
    await holder.commitTransaction();
    await holder.release();
    expect((await asked).status).toBe(400);
    const tokens = `oauth_artifacts WHERE client_id = $1 AND model = 'ClientCredentials'`;
    expect(await count(app.dataSource, tokens, [the.clientId])).toBe(1);
  });
});
