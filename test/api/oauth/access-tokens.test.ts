import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ageTouches,
  assign,
  drain,
  lastRefusal,
  newGroup,
  provision,
  refusalsOf,
  setRule,
  unassign,
  type TestGroup,
} from '../../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { clockWithoutPolls } from '../../support/clock-without-polls.js';
import { cliToken, clusterToken, type CliToken } from '../../support/cli-token.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import { FIDO2, fido2Answer } from '../../support/fido2-grant.js';
import { CALLBACK, newCodeFields, newDpopKey, postForm } from '../../support/oauth-flow.js';
import { count, rows } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

const DOMAIN = 'tokens-reach.example';
const CLUSTER = 'https://prod.tokens-reach.example';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ADMITTED = ['grouped', 'direct'];

describe('a token of a person who does not reach its application or cluster', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let group: TestGroup;
  let web: Application;
  let backend: Application;
  let native: Application;
  let cluster: string;
  const people = new Map<string, EnrolledUser & { readonly id: string }>();
  const email = (name: string) => `${name}@${DOMAIN}`;
  const of = (name: string) => people.get(name) as EnrolledUser & { readonly id: string };

  beforeAll(async () => {
    app = await startTestApp({ clock: clockWithoutPolls });
    organization = await foundOrganization(app, DOMAIN);
    for (const name of [...ADMITTED, 'unassigned']) {
      const id = await provision(organization, email(name));
      people.set(name, { id, ...(await app.enrolled(email(name))) });
    }
    group = await newGroup(organization, 'Operators', [of('grouped').id]);
    const owner = `admin@${DOMAIN}`;
    const confidential = {
      redirect_uris: [CALLBACK],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
    };
    web = await addApplication(
      app,
      { ...confidential, client_name: 'Web', grant_types: ['authorization_code'] },
      { owner },
    );
    backend = await addApplication(
      app,
      { ...confidential, client_name: 'Backend', grant_types: ['authorization_code', EXCHANGE] },
      { owner },
    );
    native = await addApplication(
      app,
      {
        client_name: 'Television',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: [DEVICE_GRANT, FIDO2],
        response_types: [],
        redirect_uris: [],
      },
      { owner },
    );
    await assigned(app, owner, DOMAIN);
    const made = await organization.admin.client.post('/api/v1/applications', {
      name: 'Production',
      type: 'kubernetes',
      resource: CLUSTER,
    });
    if (made.status !== 201) throw new Error(`the cluster was not registered: ${made.text}`);
    cluster = made.json.client_id as string;
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    const everything = [web.clientId, backend.clientId, native.clientId, cluster];
    for (const clientId of everything) {
      await unassign(app, clientId);
      await setRule(app, clientId, { access: 'everyone' });
    }
    await drain(app);
    await app.dataSource.query("DELETE FROM audit_events WHERE type = 'access_refused'");
    await app.dataSource.query('DELETE FROM oauth_user_code_tries');
    for (const name of [...ADMITTED, 'unassigned']) {
      await of(name).client.logIn(of(name).key, { address: newAddress() });
    }
  });

  /**
   * Makes an application admit only the user `direct` and the members of the group, under some
   * conditions.
   */
  async function restrict(clientId: string, conditions: object = {}): Promise<void> {
    await setRule(app, clientId, { access: 'assigned', ...conditions });
    await assign(app, clientId, { email: email('direct') });
    await assign(app, clientId, { groupId: group.id });
  }
  const refusal = (name: string, id: string | undefined, rule: string) => ({
    target: { kind: 'application', name, ...(id === undefined ? {} : { id }) },
    rule,
  });
  const outcomeOf = ({ status, json }: Answer) => [status, json.error ?? json.code];

  describe('by a code', () => {
    const redeem = async (fields: Record<string, string>) =>
      postForm(app, '/oauth/token', {
        ...fields,
        client_id: web.clientId,
        client_secret: web.clientSecret,
      });

    it.each([
      ['the rule', async () => restrict(web.clientId), 'assignment'],
      [
        'a condition',
        async () => {
          await setRule(app, web.clientId, { touchWithinSeconds: 60 });
          await ageTouches(app, email('unassigned'), 100);
        },
        'condition',
      ],
    ])('is refused with invalid_grant after %s changed', async (_, change, rule) => {
      const fields = await newCodeFields(of('unassigned').client, web.clientId);
      await change();
      const answer = await redeem(fields);
      expect(outcomeOf(answer)).toEqual([400, 'invalid_grant']);
      expect(await lastRefusal(app, email('unassigned'))).toMatchObject(
        refusal('Web', web.clientId, rule),
      );
      expect(await refusalsOf(app, email('unassigned'))).toBe(1);
      const held = 'oauth_artifacts WHERE model = $1 AND client_id = $2';
      expect(await count(app.dataSource, held, ['AccessToken', web.clientId])).toBe(0);
    });

    it('a token ends at once with the membership, by SCIM, and its grant with it', async () => {
      await restrict(web.clientId);
      const fields = await newCodeFields(of('grouped').client, web.clientId);
      const { access_token: token } = (await redeem(fields)).json as { access_token: string };
      const userinfo = () =>
        app.client().get('/oauth/userinfo', {
          address: newAddress(),
          headers: { authorization: `Bearer ${token}` },
        });
      expect((await userinfo()).status).toBe(200);
      expect(await group.patch('remove', of('grouped').id)).toBeLessThan(300);
      try {
        expect((await userinfo()).status).toBe(401);
        const introspected = await postForm(app, '/oauth/introspect', {
          client_id: web.clientId,
          client_secret: web.clientSecret,
          token,
        });
        expect(introspected.json).toEqual({ active: false });
        const held = 'oauth_grants WHERE client_id = $1 AND user_id = $2';
        expect(await count(app.dataSource, held, [web.clientId, of('grouped').id])).toBe(0);
      } finally {
        await group.patch('add', of('grouped').id);
      }
    });
  });

  describe('by a token exchange of a backend', () => {
    const exchange = async (name: string) => {
      const dpop = await newDpopKey();
      const fields = await newCodeFields(of(name).client, web.clientId);
      const issued = await postForm(app, '/oauth/token', {
        ...fields,
        client_id: web.clientId,
        client_secret: web.clientSecret,
      });
      expect([issued.status, issued.text, dpop]).toEqual([200, expect.any(String), dpop]);
      return postForm(app, '/oauth/token', {
        grant_type: EXCHANGE,
        client_id: backend.clientId,
        client_secret: backend.clientSecret,
        subject_token: issued.json.access_token as string,
        subject_token_type: ACCESS_TOKEN,
      });
    };

    it('is decided on the backend: invalid_request for a person who is not assigned', async () => {
      await restrict(backend.clientId);
      for (const name of ADMITTED) expect((await exchange(name)).status).toBe(200);
      expect(outcomeOf(await exchange('unassigned'))).toEqual([400, 'invalid_request']);
      expect(await lastRefusal(app, email('unassigned'))).toEqual(
        refusal('Backend', backend.clientId, 'assignment'),
      );
    });

    it('a condition is the challenge of RFC 9470', async () => {
      await setRule(app, backend.clientId, { touchWithinSeconds: 60 });
      await ageTouches(app, email('direct'), 100);
      const answer = await exchange('direct');
      expect(outcomeOf(answer)).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.headers.get('www-authenticate')).toMatch(
        /^Bearer error="insufficient_user_authentication".* max_age="60"/,
      );
    });
  });

  describe('for a cluster', () => {
    const exchange = (login: CliToken, resource = CLUSTER) => clusterToken(app, login, resource);
    const childGrants = (name: string) =>
      count(app.dataSource, 'oauth_grants WHERE parent_id IS NOT NULL AND user_id = $1', [
        of(name).id,
      ]);

    it('admits who is assigned, and answers others as for a cluster that does not exist', async () => {
      await restrict(cluster);
      for (const name of ADMITTED) {
        expect((await exchange(await cliToken(app, of(name).key))).status).toBe(200);
      }
      const login = await cliToken(app, of('unassigned').key);
      const before = await childGrants('unassigned');
      const refused = await exchange(login);
      expect(outcomeOf(refused)).toEqual([400, 'invalid_target']);
      expect(await lastRefusal(app, email('unassigned'))).toEqual(
        refusal(CLUSTER, cluster, 'assignment'),
      );
      const unlisted = 'https://none.tokens-reach.example';
      const unknown = await exchange(login, unlisted);
      expect([unknown.status, unknown.text]).toEqual([refused.status, refused.text]);
      expect(await lastRefusal(app, email('unassigned'))).toEqual(
        refusal(unlisted, undefined, 'assignment'),
      );
      expect(await childGrants('unassigned')).toBe(before);
    });

    it('a request with a wrong scope tells nothing of the existence of a cluster', async () => {
      await restrict(cluster);
      const { token, dpop } = await cliToken(app, of('unassigned').key);
      const ask = async (resource: string) =>
        postForm(
          app,
          '/oauth/token',
          {
            grant_type: EXCHANGE,
            client_id: 'svc-cli',
            subject_token: token,
            subject_token_type: ACCESS_TOKEN,
            resource,
            scope: 'unknown',
          },
          { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`) },
        );
      const listed = await ask(CLUSTER);
      const unlisted = await ask('https://none.tokens-reach.example');
      expect([unlisted.status, unlisted.text]).toEqual([listed.status, listed.text]);
    });

    it('a stale touch is a challenge with its age, and a new login meets it', async () => {
      await restrict(cluster, { touchWithinSeconds: 120 });
      const login = await cliToken(app, of('direct').key);
      expect((await exchange(login)).status).toBe(200);
      await ageTouches(app, email('direct'), 200);
      const answer = await exchange(login);
      expect(outcomeOf(answer)).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.json.error_description).toBe(
        'This needs a touch of your security key in the last 2 minutes.',
      );
      expect(answer.headers.get('www-authenticate')).toMatch(
        /^DPoP error="insufficient_user_authentication".* max_age="120"/,
      );
      expect(await lastRefusal(app, email('direct'))).toEqual({
        ...refusal(CLUSTER, cluster, 'condition'),
        conditions: { touchWithinSeconds: 120, models: null, userVerification: null },
      });
      expect((await exchange(await cliToken(app, of('direct').key))).status).toBe(200);
    });

    it('the session of a device is told to log in in a browser', async () => {
      await restrict(cluster, { touchWithinSeconds: 3600 });
      const login = await cliToken(app, of('direct').key);
      await app.dataSource.query(
        `UPDATE sessions SET of_device = true, touches = '{}'
         WHERE client_id = 'svc-cli' AND user_id = $1`,
        [of('direct').id],
      );
      const answer = await exchange(login);
      expect(outcomeOf(answer)).toEqual([403, 'access_denied']);
      expect(answer.json.error_description).toContain('Log in in a browser');
      expect(answer.headers.get('www-authenticate')).toBeNull();
    });
  });

  describe('by the FIDO2 grant', () => {
    const ask = (name: string) =>
      fido2Answer(app, of(name).key, { clientId: native.clientId, scope: 'openid email' });
    const sessions = (name: string) =>
      count(app.dataSource, 'sessions WHERE client_id = $1 AND user_id = $2', [
        native.clientId,
        of(name).id,
      ]);

    it('is decided on the client, and leaves no session of a refused person', async () => {
      await restrict(native.clientId);
      for (const name of ADMITTED) expect((await ask(name)).status).toBe(200);
      expect(outcomeOf(await ask('unassigned'))).toEqual([400, 'invalid_grant']);
      expect(await lastRefusal(app, email('unassigned'))).toEqual(
        refusal('Television', native.clientId, 'assignment'),
      );
      expect(await sessions('unassigned')).toBe(0);
    });

    it('a key that does not fit is told what is needed', async () => {
      await setRule(app, native.clientId, { models: 'fips-only' });
      const before = await sessions('direct');
      const answer = await ask('direct');
      expect(outcomeOf(answer)).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.json.error_description).toContain('FIPS-certified');
      expect(await sessions('direct')).toBe(before);
    });
  });

  describe('by a device code', () => {
    interface Codes {
      readonly device_code: string;
      readonly user_code: string;
    }
    const newCodes = async () =>
      (await postForm(app, '/oauth/device', { client_id: native.clientId, scope: 'openid email' }))
        .json as Codes;
    const poll = ({ device_code: code }: Codes) =>
      postForm(app, '/oauth/token', {
        grant_type: DEVICE_GRANT,
        device_code: code,
        client_id: native.clientId,
      });
    const show = (browser: Client, { user_code: code }: Codes) =>
      browser.send('POST', '/device', {
        address: newAddress(),
        body: new URLSearchParams({ user_code: code }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
    const approve = (browser: Client, { user_code: code }: Codes) =>
      browser.post('/device/approve', { user_code: code }, { address: newAddress() });

    it.each(ADMITTED)('a %s person approves the device', async (name) => {
      await restrict(native.clientId);
      const codes = await newCodes();
      expect((await show(of(name).client, codes)).status).toBe(200);
      expect((await approve(of(name).client, codes)).status).toBe(200);
      expect((await poll(codes)).status).toBe(200);
    });

    it('a person who is not assigned sees the page, and the device gets access_denied', async () => {
      await restrict(native.clientId);
      const codes = await newCodes();
      const page = await show(of('unassigned').client, codes);
      expect([page.status, page.text]).toEqual([
        403,
        expect.stringContaining('You are not assigned to <bdi>Television</bdi>'),
      ]);
      expect(outcomeOf(await poll(codes))).toEqual([400, 'access_denied']);
      expect(await lastRefusal(app, email('unassigned'))).toEqual(
        refusal('Television', native.clientId, 'assignment'),
      );
      expect(await refusalsOf(app, email('unassigned'))).toBe(1);
    });

    it('an approval without the page is refused by the statement that writes the grant', async () => {
      await restrict(native.clientId);
      const codes = await newCodes();
      const answer = await approve(of('unassigned').client, codes);
      expect(outcomeOf(answer)).toEqual([403, 'not_assigned']);
      expect(outcomeOf(await poll(codes))).toEqual([400, 'access_denied']);
      expect(await refusalsOf(app, email('unassigned'))).toBe(1);
    });

    it('a condition is a challenge that the page answers, and the code still waits', async () => {
      await restrict(native.clientId, { models: 'fips-only' });
      const codes = await newCodes();
      expect((await show(of('direct').client, codes)).status).toBe(200);
      const answer = await approve(of('direct').client, codes);
      expect(outcomeOf(answer)).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.json.detail).toContain('FIPS-certified');
      expect(outcomeOf(await poll(codes))).toEqual([400, 'authorization_pending']);
      expect(await lastRefusal(app, email('direct'))).toMatchObject({ rule: 'condition' });
    });

    it('an approved code of a person whose reach ended gives nothing', async () => {
      await restrict(native.clientId);
      const codes = await newCodes();
      expect((await approve(of('direct').client, codes)).status).toBe(200);
      await unassign(app, native.clientId);
      const issued = () =>
        rows(
          app.dataSource,
          "SELECT id FROM audit_events WHERE type = 'oauth_token_issued' AND details ->> 'client_id' = $1",
          [native.clientId],
        );
      const before = await issued();
      expect(outcomeOf(await poll(codes))).toEqual([400, 'invalid_grant']);
      expect(await issued()).toEqual(before);
    });
  });
});
