import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { accessApi, addGroup, addHostGroup, addRole, putRule } from '../../support/access-api.js';
import type { EnrolledUser, TestApp } from '../../support/app.js';
import { addWebApplication, type Application } from '../../support/applications.js';
import { cliToken, clusterToken } from '../../support/cli-token.js';
import { newAddress, type Answer } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { newCodeFields, postForm } from '../../support/oauth-flow.js';
import { rows } from '../../support/rows.js';
import { PUBLIC_KEY } from '../../support/ssh-issuance.js';

const DOMAIN = 'octo.example';
const CLUSTER = `https://prod.${DOMAIN}`;
const ROLE = 'arn:aws:iam::123456789012:role/deploy';
const MAIL = `member@${DOMAIN}`;
const OTHER = `colleague@${DOMAIN}`;

/** Names of groups. They occur in no other text, so that each match is a leak. */
const GROUP = 'Zircon Falcons';
const SECOND_GROUP = 'Quartz Herons';

/**
 * A person and a colleague reach one target of each kind by a group of SCIM. The tests search what
 * the person gets, and what an admin gets outside SCIM, for the ids and names of the groups.
 */
describe('the membership of a group of SCIM', () => {
  let running: GitHubApplication;
  let app: TestApp;
  let member: EnrolledUser & { readonly id: string };
  let colleague: EnrolledUser & { readonly id: string };
  let web: Application;
  let targets: { readonly path: string; readonly kind: string; readonly id: string }[];
  /** The texts that must not occur: the ids and the names of the groups. */
  let secrets: string[];

  beforeAll(async () => {
    running = await startGitHubApplication();
    ({ app } = running);
    const { organization, installation } = running;
    const admin = organization.admin.client;
    member = await running.member(MAIL);
    colleague = await running.member(OTHER);
    const groups = [
      await addGroup(organization, GROUP, [member.id, colleague.id]),
      await addGroup(organization, SECOND_GROUP, [member.id]),
    ];
    secrets = [...groups, GROUP, SECOND_GROUP];
    web = await addWebApplication(app, `admin@${DOMAIN}`);
    await assigned(app, `admin@${DOMAIN}`, DOMAIN);
    const cluster = await admin.post('/api/v1/applications', {
      name: 'Production',
      type: 'kubernetes',
      resource: CLUSTER,
    });
    if (cluster.status !== 201) throw new Error(cluster.text);
    const paths = [
      `/application/${web.clientId}`,
      `/application/${String(cluster.json.client_id)}`,
      `/github_installation/${installation.id}`,
      await addRole(admin, ROLE),
      await addHostGroup(admin, 'prod'),
    ];
    for (const path of paths) {
      const assignments = groups.map((group) => ({ group }));
      const put = await putRule(admin, path, { assignments });
      if (put.status !== 200) throw new Error(put.text);
    }
    targets = paths.map((path) => {
      const [, kind = '', id = ''] = path.split('/');
      return { path, kind, id };
    });
  });
  afterAll(() => running.close());

  /** Returns the secrets that occur in a text, or in the decoded JWTs and certificates in it. */
  function found(text: string): string[] {
    const claims = [...text.matchAll(/eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/g)].map(([token]) =>
      JSON.stringify(decodeJwt(token)),
    );
    const certificates = [...text.matchAll(/AAAA[\w+/]{40,}={0,2}/g)].map(([blob]) =>
      Buffer.from(blob, 'base64').toString('latin1'),
    );
    const all = [text, ...claims, ...certificates].join('\n').toLowerCase();
    return secrets.filter((secret) => all.includes(secret.toLowerCase()));
  }

  /** Returns the headers and the body of an answer as one text. */
  const wholeOf = ({ headers, text }: Answer) =>
    [...[...headers].map((pair) => pair.join(': ')), text].join('\n');

  /**
   * Every path of a GET route outside SCIM, with the known ids of targets, or a random id, for its
   * parameters.
   */
  const addresses = () =>
    app.nest
      .get(RoutePolicies)
      .routes.filter(
        ({ method, policy }) => method === 'GET' && policy.auth.session !== 'provisioner',
      )
      .flatMap(({ template }) => {
        if (!template.includes(':kind')) return [template.replaceAll(/:\w+/g, randomUUID())];
        return targets.map(({ kind, id }) =>
          template.replace(':kind', kind).replace(':id', id).replaceAll(/:\w+/g, randomUUID()),
        );
      });

  it('is in no answer and page that a person without admin rights can get', async () => {
    const leaks: string[] = [];
    const seen: number[] = [];
    for (const path of addresses()) {
      const answer = await member.client.send('GET', path, { address: newAddress() });
      seen.push(answer.status);
      if (found(wholeOf(answer)).length > 0) leaks.push(path);
    }
    expect(leaks).toEqual([]);
    expect(seen.filter((status) => status === 200).length).toBeGreaterThan(30);
    expect(seen.filter((status) => status === 403).length).toBeGreaterThan(10);
  });

  it('is in no credential, claim and log line of the person', async () => {
    const begin = app.log.length;
    const { client, key } = member;
    const ask = (path: string, body: object) => client.post(path, body, { address: newAddress() });
    const fields = await newCodeFields(client, web.clientId, { scope: 'openid email profile' });
    const secret = { client_id: web.clientId, client_secret: web.clientSecret };
    const token = await postForm(app, '/oauth/token', { ...fields, ...secret });
    const bearer = { authorization: `Bearer ${String(token.json.access_token)}` };
    const answers = {
      ssh: await ask('/v1/credentials/ssh', { public_key: PUBLIC_KEY }),
      aws: await ask('/v1/credentials/aws/token', { role_arn: ROLE }),
      github: await askToken(client, { owner: 'octo-org', repositories: ['hello'] }),
      token,
      userinfo: await app.client().get('/oauth/userinfo', { headers: bearer }),
      introspection: await postForm(app, '/oauth/introspect', {
        token: String(token.json.access_token),
        ...secret,
      }),
      cluster: await clusterToken(app, await cliToken(app, key), CLUSTER),
      setup: await client.get('/v1/setup', { address: newAddress() }),
      // The person’s own audit events: the requests above have recorded some.
      activity: await client.get('/account/activity', { address: newAddress() }),
      data: await client.get('/v1/account/export', { address: newAddress() }),
    };
    const wrong = Object.entries(answers).filter(([, { status }]) => status >= 300);
    expect(wrong.map(([what, answer]) => [what, answer.status, answer.text])).toEqual([]);
    const leaks = Object.entries(answers).filter(([, answer]) => found(wholeOf(answer)).length > 0);
    expect(leaks.map(([what]) => what)).toEqual([]);
    expect(answers.ssh.text).toContain('deploy@prod');
    const log = app.log.slice(begin).join('');
    expect(log).toContain('/v1/credentials/ssh');
    expect(found(log)).toEqual([]);
  });

  it('is in no refusal and no audit row of a person whose reach ended with the group', async () => {
    const begin = app.log.length;
    const groupIds = secrets.slice(0, 2);
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
    for (const id of groupIds) {
      const { status } = await running.organization.scim('PATCH', `/Groups/${id}`, {
        schemas,
        Operations: [{ op: 'remove', path: `members[value eq "${member.id}"]` }],
      });
      expect(status).toBeLessThan(300);
    }
    const ask = (path: string, body: object) =>
      member.client.post(path, body, { address: newAddress() });
    const refusals = [
      await ask('/v1/credentials/ssh', { public_key: PUBLIC_KEY, host: 'db.prod.example.com' }),
      await ask('/v1/credentials/aws/token', { role_arn: ROLE }),
      await askToken(member.client, { owner: 'octo-org' }),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([403, 403, 403]);
    expect(refusals.flatMap((answer) => found(wholeOf(answer)))).toEqual([]);
    const events = await rows(
      app.dataSource,
      `SELECT type, details FROM audit_events WHERE subject_id = $1 AND type IN ('access_ended', 'access_refused')`,
      [member.id],
    );
    expect(events.length).toBeGreaterThan(5);
    expect(found(JSON.stringify(events))).toEqual([]);
    // The log lines of requests to `/scim/v2/Groups` name the group in their path, rightly.
    const lines = app.log.slice(begin).filter((line) => !line.includes('/scim/v2/Groups'));
    expect(found(lines.join(''))).toEqual([]);
  });

  it('is in no explanation, list and table of an admin', async () => {
    const admin = running.organization.admin.client;
    const leaks: string[] = [];
    for (const { path, kind, id } of targets) {
      const asked = [
        `/check?user=${colleague.id}&kind=${kind}&id=${encodeURIComponent(id)}`,
        `${path}/people`,
        '/export',
      ];
      for (const each of asked) {
        const answer = await accessApi(admin, 'GET', each);
        expect(answer.status, answer.text).toBe(200);
        if (found(wholeOf(answer)).length > 0) leaks.push(each);
        if (each.startsWith('/check')) {
          expect(answer.json).toMatchObject({ allowed: true, because: 'group' });
        }
      }
    }
    // Forecasts of rules that add the person or take groups away, and the page of a forecast.
    for (const { path, kind, id } of targets) {
      const groups = secrets.slice(0, 2).map((group) => ({ group }));
      const person = { user: member.id };
      for (const assignments of [[...groups, person], groups.slice(1), [person]]) {
        const body = { access: 'assigned', conditions: {}, assignments };
        const forecast = await accessApi(admin, 'POST', `${path}/preview`, body);
        expect([forecast.status, forecast.text]).toEqual([200, expect.any(String)]);
        if (found(wholeOf(forecast)).length > 0) leaks.push(`${path}/preview`);
      }
      const query = `access=assigned&add_people=${encodeURIComponent(MAIL)}`;
      const page = await admin.get(
        `/admin/access/${kind}/${encodeURIComponent(id)}/change?${query}`,
        { address: newAddress() },
      );
      expect([page.status, page.text]).toEqual([200, expect.stringContaining('Who gains')]);
      // The hidden field is left out of the search: it has the rule that the admin proposes, which
      // names the groups, but no members.
      const field = /<input type="hidden" name="assignments"[^>]*>/;
      expect(page.text).toMatch(field);
      if (found(page.text.replace(field, '')).length > 0) leaks.push(`${path}/change`);
    }
    for (const page of [`/admin/members/${colleague.id}`, '/admin/access', '/admin/audit']) {
      const answer = await admin.get(page, { address: newAddress() });
      expect(answer.status).toBe(200);
      // The page of the audit log may name groups, because it also shows the changes of groups by
      // SCIM.
      if (page !== '/admin/audit' && found(wholeOf(answer)).length > 0) leaks.push(page);
    }
    expect(leaks).toEqual([]);
  });
});
