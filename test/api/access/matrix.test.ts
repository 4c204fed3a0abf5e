import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  addGroup,
  addHostGroup,
  addRole,
  putRule,
  type RuleBody,
} from '../../support/access-api.js';
import { lastRefusal, refusalsOf } from '../../support/access-targets.js';
import type { EnrolledUser, TestApp } from '../../support/app.js';
import { addWebApplication, type Application } from '../../support/applications.js';
import { cliToken, clusterToken, type CliToken } from '../../support/cli-token.js';
import { newAddress, type Answer } from '../../support/client.js';
import { assigned } from '../../support/domains.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { CALLBACK, newPkce } from '../../support/oauth-flow.js';
import { rows } from '../../support/rows.js';
import { PUBLIC_KEY } from '../../support/ssh-issuance.js';

const DOMAIN = 'octo.example';
const MAIL = `ada@${DOMAIN}`;
const ROLE = 'arn:aws:iam::123456789012:role/matrix';
const CLUSTER = `https://matrix.k8s.${DOMAIN}`;
const HOST = 'web.prod.example.com';

/**
 * A touch in a session: its age in seconds, if the key verified its user, and if its model is
 * FIPS-certified.
 */
interface Touch {
  readonly age: number;
  readonly uv: boolean;
  readonly fips: boolean;
}

const FITTING: Touch = { age: 10, uv: true, fips: true };

interface Condition {
  readonly conditions: object;
  /** The conditions as the audit log names them. */
  readonly recorded: object;
  /** Touches in one session, none of which meets the condition. */
  readonly unmet: readonly Touch[];
  readonly demand: string;
  readonly maxAge: number;
}

const NOTHING = { touchWithinSeconds: null, models: null, userVerification: null };
const FIPS = { models: 'fips-only' };
const UV = { user_verification: 'required' };
const AGE = { touch_within_seconds: 900 };

const CONDITIONS: Readonly<Record<string, Condition | undefined>> = {
  none: undefined,
  age: {
    conditions: AGE,
    recorded: { ...NOTHING, touchWithinSeconds: 900 },
    unmet: [{ ...FITTING, age: 1000 }],
    demand: 'This needs a touch of your security key in the last 15 minutes.',
    maxAge: 900,
  },
  fips: {
    conditions: FIPS,
    recorded: { ...NOTHING, models: 'fips-only' },
    unmet: [{ ...FITTING, fips: false }],
    demand: 'This needs a touch of a FIPS-certified security key.',
    maxAge: 60,
  },
  uv: {
    conditions: UV,
    recorded: { ...NOTHING, userVerification: 'required' },
    unmet: [{ ...FITTING, uv: false }],
    demand: 'This needs a touch of your security key with its PIN.',
    maxAge: 60,
  },
  all: {
    conditions: { ...AGE, ...FIPS, ...UV },
    recorded: { touchWithinSeconds: 900, models: 'fips-only', userVerification: 'required' },
    // Each of the three conditions is met by two of these touches, and no touch meets all three.
    unmet: [
      { ...FITTING, age: 1000 },
      { ...FITTING, fips: false },
      { ...FITTING, uv: false },
    ],
    demand:
      'This needs a touch of a FIPS-certified security key with its PIN in the last 15 minutes.',
    maxAge: 900,
  },
};

/**
 * The decision that a request must get; `condition` means that a touch does not meet the condition.
 */
type Decision = 'admitted' | 'not assigned' | 'condition';

describe('who reaches a target, by its kind, its rule and its condition', () => {
  let running: GitHubApplication;
  let app: TestApp;
  let ada: EnrolledUser & { readonly id: string };
  let cli: CliToken;
  let web: Application;
  let group: string;
  let paths: Readonly<Record<Kind, string>>;
  let clusterId: string;

  beforeAll(async () => {
    running = await startGitHubApplication();
    ({ app } = running);
    const { organization, installation } = running;
    const admin = organization.admin.client;
    ada = await running.member(MAIL);
    group = await addGroup(organization, 'Engineers', [ada.id]);
    web = await addWebApplication(app, `admin@${DOMAIN}`);
    await assigned(app, `admin@${DOMAIN}`, DOMAIN);
    const body = { name: 'Matrix', type: 'kubernetes', resource: CLUSTER };
    const cluster = await admin.post('/api/v1/applications', body);
    if (cluster.status !== 201) throw new Error(cluster.text);
    clusterId = String(cluster.json.client_id);
    cli = await cliToken(app, ada.key);
    // A touch in the second of a request counts as made for the request. Sets the last touch of ada
    // 10 seconds back, so that none does.
    await rows(
      app.dataSource,
      `UPDATE sessions SET auth_time = auth_time - interval '10 s' WHERE user_id = $1`,
      [ada.id],
    );
    paths = {
      application: `/application/${web.clientId}`,
      cluster: `/application/${clusterId}`,
      'AWS role': await addRole(admin, ROLE),
      'group of hosts': await addHostGroup(admin, 'prod'),
      'GitHub installation': `/github_installation/${installation.id}`,
    };
  });
  afterAll(() => running.close());
  beforeEach(() => rows(app.dataSource, 'TRUNCATE rate_limits'));

  /** Replaces the touches in the sessions of ada, and records each under another key. */
  async function setTouches(touches: readonly Touch[]): Promise<void> {
    await rows(
      app.dataSource,
      `UPDATE sessions s SET touches = (
         SELECT jsonb_object_agg(n, jsonb_build_object('at', x.at, 'uv', CASE WHEN (t -> 'uv')::boolean THEN x.at END, 'fips', t -> 'fips'))
         FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY e (t, n)
           CROSS JOIN LATERAL (SELECT extract(epoch FROM now())::float8 - (t ->> 'age')::int AS at) x)
       WHERE s.user_id = $1`,
      [ada.id, JSON.stringify(touches)],
    );
  }

  const problem = (status: number, code: string, title: string, detail: string) => ({
    status,
    body: { type: `${app.baseUrl}/errors/${code}`, title, status, detail, code },
  });
  const outcomeOf = ({ status, json }: Answer) => ({ status, body: json as unknown });

  /** Checks that an API which issues credentials answered as the decision demands. */
  async function expectProblem(answer: Answer, decision: Decision, condition?: Condition) {
    if (decision === 'admitted')
      return expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    const detail = 'You are not assigned to this. Ask an admin of your organization.';
    const code = 'insufficient_user_authentication';
    expect(outcomeOf(answer)).toEqual(
      decision === 'not assigned'
        ? problem(403, 'not_assigned', 'Not assigned', detail)
        : problem(401, code, 'Touch your key again', condition?.demand ?? ''),
    );
    return expectChallenge(answer, 'Bearer', decision, condition);
  }

  function expectChallenge(
    { headers }: Answer,
    scheme: string,
    decision: Decision,
    condition?: Condition,
  ): void {
    const challenge = headers.get('www-authenticate');
    if (decision === 'not assigned') return expect(challenge).toBeNull();
    expect(challenge).toMatch(new RegExp(`^${scheme} error="insufficient_user_authentication"`));
    return expect(challenge).toContain(`max_age="${condition?.maxAge}"`);
  }

  /** Checks that a token exchange for the cluster is answered as the decision demands. */
  async function expectClusterToken(decision: Decision, condition?: Condition) {
    const answer = await clusterToken(app, cli, CLUSTER);
    if (decision === 'admitted')
      return expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    const unknown =
      'you are not assigned to a cluster of this resource; ask an admin of your organization';
    const [status, error, text] =
      decision === 'not assigned'
        ? [400, 'invalid_target', unknown]
        : [401, 'insufficient_user_authentication', condition?.demand];
    expect(outcomeOf(answer)).toEqual({ status, body: { error, error_description: text } });
    return expectChallenge(answer, 'DPoP', decision, condition);
  }

  /**
   * Follows the redirects of an authorization request to a page of the service, or to the client.
   * `path` is the last one at the service.
   */
  async function authorize(path: string): Promise<{ page?: Answer; path: string; client?: URL }> {
    let next = path;
    for (let hops = 0; hops < 8; hops += 1) {
      const page = await ada.client.get(next, { address: newAddress() });
      const location = page.headers.get('location');
      if (location === null) return { page, path: next };
      const url = new URL(location, app.baseUrl);
      if (url.origin !== new URL(app.baseUrl).origin) return { client: url, path: next };
      next = `${url.pathname}${url.search}`;
    }
    throw new Error('too many redirects');
  }

  /**
   * Checks which page an authorization request leads to, and what the client gets with
   * `prompt=none` and after the user declines.
   */
  async function expectAuthorization(decision: Decision): Promise<void> {
    const request = (more: Record<string, string> = {}) =>
      `/oauth/authorize?${new URLSearchParams({
        client_id: web.clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        state: 's-1',
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
        ...more,
      }).toString()}`;
    const { page, path, client } = await authorize(request());
    if (decision === 'admitted') return expect(client?.searchParams.get('code')).toBeTruthy();
    const silent = await authorize(request({ prompt: 'none' }));
    expect(Object.fromEntries(silent.client?.searchParams ?? [])).toEqual({
      error: 'interaction_required',
      error_description: expect.any(String) as string,
      state: 's-1',
      iss: app.baseUrl,
    });
    if (decision === 'condition') {
      const login = new URL(path, app.baseUrl);
      expect([page?.status, login.pathname]).toEqual([200, '/login']);
      return expect(login.searchParams.get('again')).toBe('true');
    }
    expect([page?.status, page?.headers.get('content-type')]).toEqual([
      403,
      'text/html; charset=utf-8',
    ]);
    expect(page?.text).toContain('You are not assigned to <bdi>Web</bdi>');
    const back = await ada.client.post(`${path}/deny`, {}, { address: newAddress() });
    const told = await authorize(back.json.redirect_to as string);
    return expect(told.client?.searchParams.get('error')).toBe('access_denied');
  }

  const post = (path: string, body: object) =>
    ada.client.post(path, body, { address: newAddress() });

  /** For each kind of target: a check that requests it, and its name in the audit log. */
  const KINDS = {
    application: {
      check: expectAuthorization,
      recorded: () => ({ target: { kind: 'application', name: 'Web', id: web.clientId } }),
    },
    cluster: {
      check: expectClusterToken,
      recorded: () => ({ target: { kind: 'application', name: CLUSTER, id: clusterId } }),
    },
    'AWS role': {
      check: async (decision: Decision, condition?: Condition) =>
        expectProblem(
          await post('/v1/credentials/aws/token', { role_arn: ROLE }),
          decision,
          condition,
        ),
      recorded: () => ({ target: { kind: 'aws_role', name: ROLE } }),
    },
    'group of hosts': {
      check: async (decision: Decision, condition?: Condition) =>
        expectProblem(
          await post('/v1/credentials/ssh', { public_key: PUBLIC_KEY, host: HOST }),
          decision,
          condition,
        ),
      recorded: () => ({ target: { kind: 'host_group', name: HOST }, host_groups: ['prod'] }),
    },
    'GitHub installation': {
      check: async (decision: Decision, condition?: Condition) =>
        expectProblem(
          await askToken(ada.client, { owner: 'octo-org', repositories: ['hello'] }),
          decision,
          condition,
        ),
      recorded: () => ({ target: { kind: 'github_installation', name: 'octo-org' } }),
    },
  };
  type Kind = keyof typeof KINDS;

  const RULES: Readonly<Record<string, () => RuleBody>> = {
    everyone: () => ({ access: 'everyone' }),
    'the person': () => ({ assignments: [{ user: ada.id }] }),
    'a SCIM group': () => ({ assignments: [{ group }] }),
    'no one': () => ({ assignments: [] }),
  };

  const CASES = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    Object.keys(RULES).map((rule) => [kind, rule] as const),
  );

  it.each(CASES)('%s for %s, under each condition', async (kind, rule) => {
    const { check, recorded } = KINDS[kind];
    const admin = running.organization.admin.client;
    for (const [name, condition] of Object.entries(CONDITIONS)) {
      const body = { ...RULES[rule]?.(), conditions: condition?.conditions ?? {} };
      const put = await putRule(admin, paths[kind], body);
      expect([name, put.status, put.text]).toEqual([name, 200, expect.any(String)]);

      await rows(app.dataSource, `DELETE FROM audit_events WHERE type = 'access_refused'`);
      const isAssigned = rule !== 'no one';
      await setTouches([FITTING]);
      await check(isAssigned ? 'admitted' : 'not assigned', condition);
      if (isAssigned) expect([name, await refusalsOf(app, MAIL)]).toEqual([name, 0]);
      if (condition) {
        await setTouches(condition.unmet);
        await check(isAssigned ? 'condition' : 'not assigned', condition);
      }
      if (isAssigned && !condition) continue;
      const conditions = isAssigned ? { conditions: condition?.recorded } : {};
      expect([name, await lastRefusal(app, MAIL)]).toEqual([
        name,
        { ...recorded(), rule: isAssigned ? 'condition' : 'assignment', ...conditions },
      ]);
    }
  });
});
