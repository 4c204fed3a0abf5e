import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { ath, newDpopKey, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';
import { auditOf, rows } from '../../support/rows.js';

const ADA = 'ada@octo.example';
const CALLBACK = 'http://127.0.0.1:49321/callback';
const TOKEN = '/v1/credentials/github/token';

let running: GitHubApplication;
beforeAll(async () => {
  running = await startGitHubApplication();
});
afterAll(() => running.close());

const locationOf = (answer: Answer) => answer.headers.get('location') ?? '';

/** Logs `svc-cli` in, and returns the function that redeems its code with its DPoP key. */
async function svcLogin() {
  const { app } = running;
  const { client, key: securityKey } = await running.member(ADA);
  const key = await newDpopKey();
  const { verifier, challenge } = newPkce();
  const query = new URLSearchParams({
    client_id: 'svc-cli',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid email svc:credentials',
    code_challenge_method: 'S256',
    code_challenge: challenge,
    dpop_jkt: key.thumbprint,
  });
  const visit = (browser: Client, path: string) => browser.get(path, { address: newAddress() });
  const begun = await visit(client, `/oauth/authorize?${query.toString()}`);
  await client.logIn(securityKey, { address: newAddress() });
  const sent = await visit(client, locationOf(await visit(client, locationOf(begun))));
  const fields = {
    grant_type: 'authorization_code',
    client_id: 'svc-cli',
    code: parameterOf(new URL(locationOf(sent)), 'code'),
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  };
  const redeem = async () => {
    const dpop = await key.proof('POST', `${app.baseUrl}/oauth/token`);
    return postForm(app, '/oauth/token', fields, { dpop });
  };
  return { key, redeem };
}

it('the end of a session whose code was redeemed twice at once revokes its GitHub tokens', async () => {
  const { app, github } = running;
  const { key, redeem } = await svcLogin();
  const { access_token: token } = (await redeem()).json as { access_token: string };
  const dpop = await key.proof('POST', `${app.baseUrl}${TOKEN}`, { ath: ath(token) });
  const headers = { authorization: `DPoP ${token}`, dpop };
  const issued = await app.client().post(TOKEN, {}, { address: newAddress(), headers });
  expect(issued.status).toBe(200);
  await app.dataSource.query(
    `UPDATE oauth_artifacts SET consumed_at = now() - interval '0.1 s'
     WHERE model = 'AuthorizationCode' AND consumed_at > now() - interval '5 s'`,
  );
  expect((await redeem()).json.error).toBe('invalid_grant');
  const queued = await rows(
    app.dataSource,
    `SELECT t.next_attempt_at = s.expires_at AS at_end FROM github_tokens t JOIN sessions s ON s.id = t.session_id
     WHERE s.client_id = 'svc-cli'`,
  );
  expect(queued).toEqual([{ at_end: true }]);
  await vi.waitUntil(() => github.state.tokens.at(-1)?.revoked, { timeout: 90_000 });
  await vi.waitUntil(async () => {
    const events = await auditOf(app.dataSource, ADA);
    return events.some(({ type }) => type === 'github_token_revoked');
  }, 90_000);
});
