import { Client as Connection } from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { operatorAccess } from '../../src/domain/admin/operator-access/compose-access.js';
import { isLostRace } from '../../src/platform/database/statements/faults.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { addKey, keysOf } from '../support/keys.js';
import { CALLBACK, newCodeFields, postForm } from '../support/oauth-flow.js';
import { idOf, orgApi } from '../support/org-api.js';
import { enrollWith } from '../support/passes.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const DOMAIN = 'contention.example';
const PATCH = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] };
const SECRET_POST = { token_endpoint_auth_method: 'client_secret_post' };
const SERVICE = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] };

interface Person {
  readonly id: string;
  readonly email: string;
  readonly web: Readonly<Record<string, string>>;
  readonly service: Readonly<Record<string, string>>;
  /** The key of the enrollment, and the spare one if the person registers it. */
  keys: readonly SoftwareKey[];
  browser: Client;
}

let app: TestApp;
let organization: ScimOrganization;
let people: readonly Person[];
beforeAll(async () => {
  app = await startTestApp();
  organization = await foundOrganization(app, DOMAIN);
  people = await Promise.all(['p0', 'p1', 'p2'].map(newPerson));
});
afterAll(() => app.close());

async function newPerson(name: string): Promise<Person> {
  const email = `${name}@${DOMAIN}`;
  await organization.scim('POST', '/Users', { userName: email });
  const { client: browser, key } = await app.enrolled(email);
  const client = async (metadata: object) => {
    const made = await addApplication(app, { ...metadata, ...SECRET_POST }, { owner: email });
    return { client_id: made.clientId, client_secret: made.clientSecret };
  };
  const [web, service] = [await client({ redirect_uris: [CALLBACK] }), await client(SERVICE)];
  return { id: await idOf(app, email), email, web, service, keys: [key], browser };
}

/**
 * Gives a person a new key and session, a grant of each of the three applications, a certificate,
 * and a token of the service.
 */
async function restore(person: Person): Promise<void> {
  const { id, email, service } = person;
  await rows(app.dataSource, 'DELETE FROM enrollment_passes WHERE user_id = $1', [id]);
  await rows(app.dataSource, 'DELETE FROM authenticators WHERE user_id = $1', [id]);
  person.browser = app.client();
  const key = app.newKey();
  person.keys = [key, app.newKey()];
  await person.browser.signIn(email);
  expect((await enrollWith(app, person.browser, key)).status).toBe(200);
  for (const { web } of people) {
    const fields = await newCodeFields(person.browser, web['client_id'] ?? '');
    expect((await postForm(app, '/oauth/token', { ...fields, ...web })).status).toBe(200);
  }
  await person.browser.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
  await postForm(app, '/oauth/token', { grant_type: 'client_credentials', ...service });
}

type Act = (on: Person, by: Person) => Promise<Answer | undefined>;

const memberAct =
  (method: string, path: string): Act =>
  ({ id }, { browser }) =>
    orgApi(browser, method, `/members/${id}/${path}`);
const own =
  (method: string, pathOf: (by: Person) => string): Act =>
  (on, { browser }) =>
    browser.send(method, pathOf(on), { address: newAddress() });
const operator =
  (kind: 'make-admin' | 'revoke-everything' | 'give-pass'): Act =>
  async ({ id: userId }) => {
    const who = { name: 'olga', uid: 0, loginUid: undefined, claimedUser: undefined, host: 'h' };
    const refused = (error: { code?: string }) => expect(error.code).toBe('account_inactive');
    await operatorAccess(app.dataSource).perform({ kind, userId, operator: who }).catch(refused);
    return undefined;
  };
const scimActive = (id: string, value: boolean) => ({
  method: 'PATCH',
  path: `/Users/${id}`,
  data: { ...PATCH, Operations: [{ op: 'replace', path: 'active', value }] },
});

const ACTS: readonly Act[] = [
  memberAct('POST', 'promote'),
  memberAct('POST', 'demote'),
  memberAct('POST', 'deactivate'),
  memberAct('POST', 'activate'),
  memberAct('POST', 'revoke-credentials'),
  memberAct('POST', 'enrollment-passes'),
  memberAct('DELETE', 'enrollment-passes'),
  operator('make-admin'),
  operator('revoke-everything'),
  operator('give-pass'),
  own('DELETE', ({ web }) => `/v1/account/applications/${web['client_id']}`),
  own('POST', () => '/v1/sessions/end-others'),
  own('POST', ({ service }) => `/api/v1/applications/${service['client_id']}/revoke-tokens`),
  own('POST', ({ web }) => `/api/v1/applications/${web['client_id']}/revoke-tokens`),
  ({ id }) => {
    const { path, data } = scimActive(id, false);
    return organization.scim('PATCH', path, data);
  },
  ({ id }) => {
    const Operations = [...people, ...people].map((one, n) => scimActive(one.id, n > 2));
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'];
    return organization.scim('POST', '/Bulk', {
      schemas,
      Operations: id < (people[1]?.id ?? '') ? Operations : Operations.toReversed(),
    });
  },
  async ({ email }, { browser }) => {
    const [key] = await keysOf(app, email);
    return browser.send('DELETE', `/v1/keys/${key?.id}`, { address: newAddress() });
  },
  (_, { browser, keys }) => addKey(app, browser, keys[1] as SoftwareKey, 'Spare'),
  ({ service }) => postForm(app, '/oauth/token', { grant_type: 'client_credentials', ...service }),
  async ({ email, keys }) => {
    const browser = app.client();
    await browser.signIn(email);
    const started = await browser.post('/login/webauthn/start', {});
    const asked = started.json.publicKey?.allowCredentials as { id: string }[] | undefined;
    if (started.status !== 200 || asked?.length !== 1) return started;
    const { state, publicKey } = started.json;
    // the spare key is the only one if another of the acts has just removed the first
    const held = keys.find((key) => key.state.credentials.some(({ id }) => id === asked[0]?.id));
    if (!held) throw new Error('the server asks for a key that the person does not have');
    const credential = held.get(publicKey, app.baseUrl);
    return browser.post('/login/webauthn/complete', { state, credential });
  },
];

describe('20 acts at once on three people, by three admins, SCIM, the operator and themselves', () => {
  it.each([1, 2, 3])('never deadlock, and each has an honest answer: round %i', async (round) => {
    await rows(app.dataSource, 'UPDATE users SET active = true, is_org_admin = true');
    for (const person of people) await restore(person);
    const query = vi.spyOn(Connection.prototype, 'query');
    let failed: typeof query.mock.settledResults = [];
    const acts = ACTS.map((act, n) => {
      const [on, by] = [people[(n + round) % 3], people[(n * round + 1) % 3]];
      return act(on as Person, by as Person);
    });
    const answers = await Promise.all(acts).finally(() => {
      failed = query.mock.settledResults.filter(({ type }) => type === 'rejected');
      query.mockRestore();
    });
    // no statement failed by a deadlock, not even one that was then repeated
    expect(failed.filter(({ value }) => isLostRace(value))).toEqual([]);
    const faults = answers.filter((answer) => answer !== undefined && answer.status >= 500);
    expect(faults.map((answer) => answer?.text)).toEqual([]);
    expect(answers.some((answer) => answer !== undefined && answer.status < 300)).toBe(true);
  });
});
