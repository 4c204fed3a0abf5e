import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { CALLBACK, newCodeFields, newDpopKey, postForm } from '../../support/oauth-flow.js';
import { artifactId } from '#domain/oauth/grants/artifact.js';
import { OauthRows } from '../../support/oauth-rows.js';

const SCOPE = 'openid svc:credentials svc:admin';

describe('svc:admin of a client', () => {
  let app: TestApp;
  let admin: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    admin = await app.enrolled('admin@admin-scope.example');
    // Gives svc-cli the authorization-code grant as well, because the rule must hold for every
    // grant.
    await app.dataSource.query(
      `UPDATE oauth_clients SET metadata = metadata || $1 WHERE id = 'svc-cli'`,
      [
        {
          grant_types: ['authorization_code'],
          response_types: ['code'],
          redirect_uris: [CALLBACK],
        },
      ],
    );
  });
  afterAll(() => app.close());

  /** Gets a code as svc-cli, and redeems it with the given headers. Returns the token response. */
  async function redeem(headers: Record<string, string>): Promise<Answer> {
    const asked = { scope: SCOPE, key: admin.key };
    const code = await newCodeFields(admin.client, 'svc-cli', asked);
    return postForm(app, '/oauth/token', { client_id: 'svc-cli', ...code }, headers);
  }

  it('10.1 is omitted from a token for an authorization code without a DPoP key', async () => {
    const { status, json } = await redeem({});
    expect([status, json.token_type, json.scope]).toEqual([
      200,
      'Bearer',
      'openid svc:credentials',
    ]);
  });

  it('10.1 is granted with a DPoP key to a token for an authorization code, for 15 minutes', async () => {
    const dpop = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    const { status, json } = await redeem({ dpop });
    expect([status, json]).toMatchObject([
      200,
      { token_type: 'DPoP', scope: SCOPE, expires_in: 900 },
    ]);
  });

  it('10.1 is removed by the upgrade from tokens without a key, and from no others', async () => {
    const oauth = new OauthRows(app.dataSource);
    const person = await oauth.user({ admin: true });
    const tokens = {
      unbound: await oauth.token(person, { payload: { scope: 'openid svc:admin' } }),
      bound: await oauth.token(person, { payload: { scope: 'openid svc:admin', jkt: 'x' } }),
      other: await oauth.token(person, { payload: { scope: 'openid svc:administer' } }),
    };
    const migration = new URL(
      '../../../migrations/1763784001000-unbound-admin-tokens.sql',
      import.meta.url,
    );
    await app.dataSource.query(readFileSync(migration, 'utf8'));
    const left = await app.dataSource.query<{ id: string }[]>(
      "SELECT encode(id, 'hex') AS id FROM oauth_artifacts WHERE model = 'AccessToken'",
    );
    const ids = new Set(left.map(({ id }) => id));
    const isLeft = Object.entries(tokens).map(([name, token]) => [
      name,
      ids.has(artifactId(token).toString('hex')),
    ]);
    expect(Object.fromEntries(isLeft)).toEqual({ unbound: false, bound: true, other: true });
  });
});
