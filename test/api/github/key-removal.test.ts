import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { putRule } from '../../support/access-api.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { addKey, keysOf } from '../../support/keys.js';
import { auditOf } from '../../support/rows.js';

const FIPS_MODEL = '73bb0cd4-e502-49b8-9c6f-b59445bf720b';

describe('the removal of a security key', () => {
  let running: GitHubApplication;
  beforeAll(async () => {
    running = await startGitHubApplication();
  });
  afterAll(() => running.close());

  it('has GitHub revoke the tokens that the key opened, and no others', async () => {
    const { app, github } = running;
    const email = 'dev@octo.example';
    const { client } = await running.member(email);
    const second = app.newKey();
    await addKey(app, client, second, 'Lost');
    const lost = app.client();
    await lost.logIn(second);
    const [kept, stolen] = [await askToken(client), await askToken(lost)].map(
      ({ json }) => json.token as string,
    );
    const { text } = await client.get('/account/keys');
    expect(text).toContain('1 session and 1 GitHub token');
    const id = (await keysOf(app, email))[1]?.id ?? '';
    expect((await client.send('DELETE', `/v1/keys/${id}`)).status).toBe(200);
    const isKnown = (token: string | undefined) =>
      github.state.tokens.some((minted) => minted.token === token && !minted.revoked);
    await expect.poll(() => isKnown(stolen)).toBe(false);
    expect(isKnown(kept)).toBe(true);
    const removed = (await auditOf(app.dataSource, email)).find(
      ({ type }) => type === 'key_removed',
    );
    expect(removed?.details).toMatchObject({ sessions: 1, github_tokens: 1 });
  });

  it('has GitHub revoke a token of another session, if only a touch of the key met the conditions', async () => {
    const { app, github, organization, installation } = running;
    const email = 'ops@octo.example';
    const { client } = await running.member(email);
    const fips = app.newKey({ aaguid: FIPS_MODEL });
    await addKey(app, client, fips, 'Certified');
    const path = `/github_installation/${installation.id}`;
    await client.logIn(fips);
    const conditions = { models: 'fips-only' };
    await putRule(organization.admin.client, path, { access: 'everyone', conditions });
    const token = (await askToken(client)).json.token as string;
    expect(github.state.liveToken(token)).toBeDefined();
    const id = (await keysOf(app, email))[1]?.id ?? '';
    expect((await client.get('/account/keys')).text).toContain('1 GitHub token');
    expect((await client.send('DELETE', `/v1/keys/${id}`)).status).toBe(200);
    await expect.poll(() => github.state.liveToken(token)).toBeUndefined();
    expect((await client.get('/v1/sessions')).status).toBe(200);
  });
});
