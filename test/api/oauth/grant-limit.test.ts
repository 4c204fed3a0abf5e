import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { grantKind } from '../../../src/domain/oauth/grants/grants.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addWebApplication } from '../../support/applications.js';
import { CALLBACK } from '../../support/oauth-flow.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { count } from '../../support/rows.js';

describe('the number of grants of a user, all of which one statement must be able to end', () => {
  let app: TestApp;
  let rowsOf: OauthRows;
  beforeAll(async () => {
    app = await startTestApp();
    rowsOf = new OauthRows(app.dataSource);
  });
  afterAll(() => app.close());

  it.each(['issue', 'issueUnlocked'] as const)(
    'has a limit, over all sessions and clients of the user (%s)',
    async (how) => {
      const kind = grantKind({ grants: 3, signIns: 100 });
      const [ada, bob] = [await rowsOf.user(), await rowsOf.user()];
      const write = async (user: typeof ada) => {
        const { id: sessionId } = await rowsOf.session(user);
        const clientId = await rowsOf.client();
        const about = { clientId, userId: user.id, sessionId, payload: {}, expiresIn: 60 };
        const grant = { id: randomBytes(32), ...about };
        const { manager } = app.dataSource;
        if (how === 'issue') return kind.issue(manager, grant);
        return (await kind.issueUnlocked(manager, [grant]))[0];
      };
      for (let n = 0; n < 3; n += 1) expect(await write(ada)).toEqual({ issued: true });
      expect(await write(ada)).toEqual({ denial: 'withheld' });
      expect(await write(bob)).toEqual({ issued: true });
      expect(await count(app.dataSource, 'oauth_grants WHERE user_id = $1', [ada.id])).toBe(3);
    },
  );

  it('has a limit for clients that registered themselves, all of which are told of its end', async () => {
    const kind = grantKind({ grants: 100, signIns: 3 });
    const ada = await rowsOf.user();
    const application = await rowsOf.application(ada);
    const { id: sessionId } = await rowsOf.session(ada);
    const write = (clientId: string) => {
      const about = { clientId, userId: ada.id, sessionId, payload: {}, expiresIn: 60 };
      return kind.issue(app.dataSource.manager, { id: randomBytes(32), ...about });
    };
    const clients = [await rowsOf.client(), await rowsOf.client(), await rowsOf.client()];
    for (const clientId of clients) expect(await write(clientId)).toEqual({ issued: true });
    expect(await write(await rowsOf.client())).toEqual({ denial: 'withheld' });
    expect(await write(application)).toEqual({ issued: true });
    await app.dataSource.query('DELETE FROM oauth_clients WHERE id = $1', [clients[0]]);
    expect(await write(await rowsOf.client())).toEqual({ issued: true });
  });

  it('is told to the application of a sign-in beyond it', async () => {
    const { client } = await app.enrolled('many@grants.example');
    const { clientId } = await addWebApplication(app, 'many@grants.example');
    const queries = app.nest.get(BatchedQueries, { strict: false });
    const full = vi.spyOn(queries, 'writeGrant').mockResolvedValue({ denial: 'withheld' });
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      nonce: 'n',
    });
    const answer = await client.get(`/oauth/authorize?${query.toString()}`);
    full.mockRestore();
    const { searchParams } = new URL(answer.headers.get('location') ?? '');
    expect([searchParams.get('error'), searchParams.get('error_description')]).toEqual([
      'access_denied',
      'the user has too many sign-ins to applications',
    ]);
  });
});
