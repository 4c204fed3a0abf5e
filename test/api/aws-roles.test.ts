import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSts } from '@svc/stand-ins/sts';
import { AWS_TOKEN } from '#domain/aws/aws-tokens.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { accessApi, addGroup, addRole, putRule } from '../support/access-api.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { idOf, orgApi } from '../support/org-api.js';
import { auditOf, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const PATH = '/v1/credentials/aws/token';
const ROLES = 'https://aws.amazon.com/roles';
const ACCOUNT = 'arn:aws:iam::123456789012:role';
const ADA = 'ada@roles.example';

let app: TestApp;
let own: ScimOrganization;
let admin: Client;
let ada: Client;
let adaId: string;
/** The ids of a group that has ada as a member, and of a group that has not. */
let inside: string;
let outside: string;
beforeAll(async () => {
  app = await startTestApp();
  own = await foundOrganization(app, 'roles.example');
  admin = own.admin.client;
  await own.scim('POST', '/Users', { userName: ADA });
  ({ client: ada } = await app.enrolled(ADA));
  adaId = await idOf(app, ADA);
  inside = await addGroup(own, 'Inside', [adaId]);
  outside = await addGroup(own, 'Outside', []);
});
afterAll(() => app.close());

const ask = (role?: string, client = ada): Promise<Answer> =>
  client.post(PATH, role === undefined ? {} : { role_arn: role }, { address: newAddress() });
const setMode = (mode: string) => orgApi(admin, 'PATCH', '', { aws_roles: mode });

/** Deletes every role, and lets the organization issue tokens for any role again. */
async function withoutRoles(): Promise<void> {
  await app.dataSource.query("DELETE FROM access_targets WHERE kind = 'aws_role'");
  await setMode('any');
}

/**
 * Replaces the touches in the sessions of ada by one, some seconds ago, and with these properties.
 */
async function setTouch(secondsAgo: number, { uv = true, fips = false } = {}): Promise<void> {
  await rows(
    app.dataSource,
    `UPDATE sessions SET touches = jsonb_build_object(authenticator_id::text, jsonb_build_object(
       'at', extract(epoch FROM now()) - $2::int, 'fips', $4::boolean,
       'uv', CASE WHEN $3::boolean THEN extract(epoch FROM now()) - $2::int END))
     WHERE user_id = $1 AND level = 'verified'`,
    [adaId, secondsAgo, uv, fips],
  );
}

const RULES = {
  unlisted: undefined,
  everyone: () => ({ access: 'everyone' }),
  person: () => ({ assignments: [{ user: adaId }] }),
  group: () => ({ assignments: [{ group: inside }] }),
  'another group': () => ({ assignments: [{ group: outside }] }),
  'no one': () => ({ assignments: [] }),
} as const;
const CONDITIONS = {
  none: {},
  age: { touch_within_seconds: 900 },
  fips: { models: 'fips-only' },
  pin: { user_verification: 'required' },
  all: { touch_within_seconds: 900, models: 'fips-only', user_verification: 'required' },
} as const;

describe('a token for a role of AWS, by the mode, the rule, the condition and the person', () => {
  const cases = (['any', 'listed'] as const).flatMap((mode) =>
    (Object.keys(RULES) as (keyof typeof RULES)[]).flatMap((rule) =>
      (Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[])
        .filter((condition) => rule !== 'unlisted' || condition === 'none')
        .map((condition) => [mode, rule, condition] as const),
    ),
  );

  it.each(cases)('mode %s, rule %s, condition %s', async (mode, rule, condition) => {
    await withoutRoles();
    const role = `${ACCOUNT}/matrix`;
    const makeRule = RULES[rule];
    if (makeRule) {
      const path = await addRole(admin, role);
      const body = { ...makeRule(), conditions: CONDITIONS[condition] };
      expect((await putRule(admin, path, body as object)).status).toBe(200);
    }
    await setMode(mode);
    const isAdmitted = { unlisted: mode === 'any', everyone: true, person: true, group: true };
    const admitted = Object.hasOwn(isAdmitted, rule) && isAdmitted[rule as 'everyone'];
    const refusal = admitted ? [401, 'insufficient_user_authentication'] : [403, 'not_assigned'];

    // A touch that meets no condition: it is too old, without user verification, and not by a FIPS
    // model.
    await setTouch(901, { uv: false });
    const stale = await ask(role);
    const isFree = admitted && condition === 'none';
    expect([stale.status, stale.json.code]).toEqual(isFree ? [200, undefined] : refusal);
    if (!isFree) {
      const events = await auditOf(app.dataSource, ADA);
      expect(events.at(-1)).toMatchObject({
        type: 'access_refused',
        details: {
          target: { kind: 'aws_role', name: role },
          rule: admitted ? 'condition' : 'assignment',
        },
      });
    }
    // A touch that meets every condition.
    await setTouch(10, { fips: true });
    const fresh = await ask(role);
    expect([fresh.status, fresh.json.code]).toEqual(admitted ? [200, undefined] : refusal);
    if (admitted) expect(decodeJwt(fresh.json.id_token)[ROLES]).toEqual([role]);
    // A token that names no role works for every role, so that one is refused if a role is
    // restricted.
    const isRestricted = rule !== 'unlisted' && (rule !== 'everyone' || condition !== 'none');
    const bare = await ask();
    expect([bare.status, bare.json.code]).toEqual(
      mode === 'listed' || isRestricted ? [400, 'invalid_request'] : [200, undefined],
    );
  });

  it('a session of a device meets no condition: it is told to log in in a browser', async () => {
    await withoutRoles();
    const path = await addRole(admin, `${ACCOUNT}/device`);
    await putRule(admin, path, { access: 'everyone', conditions: { touch_within_seconds: 60 } });
    await setTouch(61);
    await rows(app.dataSource, 'UPDATE sessions SET of_device = true WHERE user_id = $1', [adaId]);
    const answer = await ask(`${ACCOUNT}/device`);
    await rows(app.dataSource, 'UPDATE sessions SET of_device = false WHERE user_id = $1', [adaId]);
    expect([answer.status, answer.json.code]).toEqual([403, 'browser_required']);
  });

  it('the rule of another organization about the same role neither admits nor refuses', async () => {
    await withoutRoles();
    const foreign = await foundOrganization(app, 'other-roles.example');
    const role = `${ACCOUNT}/both`;
    const path = await addRole(foreign.admin.client, role);
    await putRule(foreign.admin.client, path, { assignments: [] });
    expect((await ask(role)).status).toBe(200);
    expect((await ask()).status).toBe(200);
    await setMode('listed');
    expect((await ask(role)).json.code).toBe('not_assigned');
    await putRule(foreign.admin.client, path, { access: 'everyone' });
    expect((await ask(role)).json.code).toBe('not_assigned');
  });

  it('STS refuses the token of one role to another one, and a closed role to a token without the claim', async () => {
    await withoutRoles();
    const [open, closed] = [`${ACCOUNT}/open`, `${ACCOUNT}/closed`];
    const sts = await startSts({
      provider: { issuer: app.baseUrl, audiences: ['sts.amazonaws.com'] },
      roles: [
        { arn: open, trusts: () => true },
        { arn: closed, trusts: () => true, demandsRoleClaim: true },
      ],
    });
    const assume = async (token: string, role: string) => {
      const body = new URLSearchParams({
        Action: 'AssumeRoleWithWebIdentity',
        Version: '2011-06-15',
        RoleArn: role,
        RoleSessionName: 'ada',
        WebIdentityToken: token,
      });
      return (await fetch(sts.url, { method: 'POST', body })).status;
    };
    try {
      const bare = (await ask()).json.id_token as string;
      const named = (await ask(open)).json.id_token as string;
      expect([await assume(bare, open), await assume(bare, closed)]).toEqual([200, 403]);
      expect([await assume(named, open), await assume(named, closed)]).toEqual([200, 403]);
      const right = (await ask(closed)).json.id_token as string;
      expect([await assume(right, closed), await assume(right, open)]).toEqual([200, 403]);
    } finally {
      await sts.close();
    }
  });
});

describe('a role whose rule changes while a token is issued', () => {
  /**
   * Locks the row of the user, starts a request that waits for it with its snapshot already taken,
   * makes a change, and returns the answer.
   */
  async function whileParked(role: string, change: () => Promise<unknown>): Promise<Answer> {
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [adaId]);
    const attempt = ask(role);
    await untilWaiting(app.dataSource, 1);
    await change();
    await holder.rollbackTransaction();
    await holder.release();
    return attempt;
  }

  it.each<readonly [string, (path: string) => Promise<unknown>]>([
    ['listed with a rule', async () => putRule(admin, await addRole(admin, `${ACCOUNT}/race`), {})],
    ['left out of the list', () => setMode('listed')],
  ])('is %s: the request that waited is refused', async (_, change) => {
    await withoutRoles();
    const answer = await whileParked(`${ACCOUNT}/race`, () => change(''));
    expect([answer.status, answer.json.code]).toEqual([403, 'not_assigned']);
  });

  it('loses an assignment, gets a condition, or becomes one that must be named', async () => {
    await withoutRoles();
    const role = `${ACCOUNT}/narrower`;
    const path = await addRole(admin, role);
    await putRule(admin, path, { assignments: [{ user: adaId }] });
    const lost = await whileParked(role, () => putRule(admin, path, {}));
    expect([lost.status, lost.json.code]).toEqual([403, 'not_assigned']);
    await putRule(admin, path, { assignments: [{ group: inside }] });
    const left = await whileParked(role, async () =>
      own.scim('PATCH', `/Groups/${inside}`, {
        Operations: [{ op: 'remove', path: `members[value eq "${adaId}"]` }],
      }),
    );
    await own.scim('PATCH', `/Groups/${inside}`, {
      Operations: [{ op: 'add', path: 'members', value: [{ value: adaId }] }],
    });
    expect([left.status, left.json.code]).toEqual([403, 'not_assigned']);
    await putRule(admin, path, { access: 'everyone' });
    await setTouch(100);
    const conditions = { touch_within_seconds: 60 };
    const stale = await whileParked(role, () =>
      putRule(admin, path, { access: 'everyone', conditions }),
    );
    expect(stale.json.code).toBe('insufficient_user_authentication');
  });

  it('is not free to a batch while another transaction commits it or another change', async () => {
    await withoutRoles();
    const role = `${ACCOUNT}/batched`;
    const [session] = await rows<{ id: string }>(
      app.dataSource,
      `SELECT id FROM sessions WHERE user_id = $1 AND level = 'verified' ORDER BY created_at DESC LIMIT 1`,
      [adaId],
    );
    const request = () => ({
      sessionId: session?.id ?? '',
      userId: adaId,
      email: ADA,
      tokenId: newUuid(),
      roleArn: role,
      isReadOnly: false,
      sourceIdentity: ADA,
      lifetime: 300,
      auditId: newUuid(),
      origin: { requestId: 'r', ip: undefined, userAgent: undefined },
    });
    const batch = () => AWS_TOKEN.issueUnlocked(app.dataSource.manager, [request(), request()]);
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(
      `INSERT INTO access_targets (org_id, kind, name, role_arn, access)
       SELECT org_id, 'aws_role', 'batched', $2, 'assigned' FROM users WHERE id = $1`,
      [adaId, role],
    );
    // runs the deferred triggers, as a commit does
    await holder.query('SET CONSTRAINTS ALL IMMEDIATE');
    const added = await batch();
    await holder.commitTransaction();
    expect(added).toEqual([{ denial: 'changed' }, { denial: 'changed' }]);
    await holder.startTransaction();
    await holder.query('UPDATE access_targets SET updated_at = now() WHERE role_arn = $1', [role]);
    await holder.query('SET CONSTRAINTS ALL IMMEDIATE');
    const held = await batch();
    await holder.rollbackTransaction();
    await holder.release();
    expect(held).toEqual([{ denial: 'changed' }, { denial: 'changed' }]);
    expect(await batch()).toMatchObject([{ denial: 'not_assigned' }, { denial: 'not_assigned' }]);
    expect((await accessApi(admin, 'GET', '?q=batched')).json.targets).toHaveLength(1);
  });
});
