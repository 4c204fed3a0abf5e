import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IssuanceKind, Outcome } from '#domain/access/issuance/issuance.repository.js';
import { storeGroupSetting } from '#domain/access-revocation/ended-reach/group-setting.repository.js';
import { GRANT, type GrantRequest } from '#domain/oauth/grants/grants.repository.js';
import {
  CLUSTER_TOKEN,
  USER_TOKEN,
  type ClusterTokenRequest,
  type TokenRequest,
} from '#domain/oauth/grants/tokens.repository.js';
import { issueAcross, plantParking } from '../../support/access-races.js';
import { assign, drain, setRule, unassign } from '../../support/access-targets.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { OauthRows, type SessionRow, type UserRow } from '../../support/oauth-rows.js';
import { count, rows } from '../../support/rows.js';

const ORIGIN = { requestId: 'r', ip: undefined, userAgent: undefined };

/** The rule by which the person reaches the target before the change. */
type Reach = 'everyone' | 'person' | 'group';

interface Change {
  readonly name: string;
  readonly before: Reach;
  readonly commit: () => Promise<unknown>;
}

describe('an issuer that parks after its snapshot while a reach ends', () => {
  let app: TestApp;
  let oauth: OauthRows;
  let person: UserRow;
  let session: SessionRow;
  let groupId: string;
  let otherOrgId: string;
  /** The application and the cluster whose rules change, and two that no change concerns. */
  let application: string;
  let cluster: string;
  let otherApplication: string;
  let otherCluster: string;

  beforeAll(async () => {
    app = await startTestApp();
    oauth = new OauthRows(app.dataSource);
    await plantParking(app.dataSource);
    person = await oauth.user();
    otherOrgId = (await oauth.user()).orgId ?? '';
    application = await newClient('application');
    otherApplication = await newClient('application');
    cluster = await newClient('kubernetes');
    otherCluster = await newClient('kubernetes');
  });
  afterAll(() => app.close());

  beforeEach(async () => {
    const { dataSource } = app;
    await dataSource.query('UPDATE deployment SET access_by_groups = true');
    await dataSource.query('UPDATE oauth_clients SET org_id = $2 WHERE id = ANY ($1)', [
      [application, cluster],
      person.orgId,
    ]);
    for (const id of [application, cluster]) {
      await unassign(app, id);
      await setRule(app, id, {});
    }
    groupId = randomUUID();
    await dataSource.query('INSERT INTO groups (id, org_id, display_name) VALUES ($1, $2, $3)', [
      groupId,
      person.orgId,
      groupId,
    ]);
    await dataSource.query('INSERT INTO group_members (group_id, user_id) VALUES ($1, $2)', [
      groupId,
      person.id,
    ]);
    await drain(app);
    session = await oauth.session(person);
  });

  async function newClient(kind: 'application' | 'kubernetes'): Promise<string> {
    const id = `client-${randomBytes(6).toString('hex')}`;
    const isCluster = kind === 'kubernetes';
    await app.dataSource.query(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id, resource) VALUES ($1, $2, '{}', $3, $4, $5)`,
      [
        id,
        kind,
        isCluster ? null : person.id,
        person.orgId,
        isCluster ? `https://${id}.example` : null,
      ],
    );
    return id;
  }

  async function reachBy(reach: Reach): Promise<void> {
    for (const id of [application, cluster]) {
      await setRule(app, id, { access: reach === 'everyone' ? 'everyone' : 'assigned' });
      if (reach === 'person') await assign(app, id, { email: person.email });
      if (reach === 'group') await assign(app, id, { groupId });
    }
  }

  const onBoth = async (act: (clientId: string) => Promise<unknown>) => {
    for (const id of [application, cluster]) await act(id);
  };
  const run = (text: string, values: unknown[]) => app.dataSource.query(text, values);
  const CHANGES: readonly Change[] = [
    {
      name: 'the membership is removed',
      before: 'group',
      commit: () => run('DELETE FROM group_members WHERE group_id = $1', [groupId]),
    },
    {
      name: 'the group is deleted',
      before: 'group',
      commit: () => run('DELETE FROM groups WHERE id = $1', [groupId]),
    },
    {
      name: 'the assignment of the group is removed',
      before: 'group',
      commit: () => onBoth((id) => unassign(app, id)),
    },
    {
      name: 'the assignment of the person is removed',
      before: 'person',
      commit: () => onBoth((id) => unassign(app, id)),
    },
    {
      name: 'the rule for everyone becomes one for assigned people',
      before: 'everyone',
      commit: () => onBoth((id) => setRule(app, id, { access: 'assigned' })),
    },
    {
      name: 'a condition is added',
      before: 'everyone',
      commit: () => onBoth((id) => setRule(app, id, { models: 'fips-only' })),
    },
    {
      name: 'the target moves to another organization',
      before: 'person',
      commit: () =>
        run('UPDATE oauth_clients SET org_id = $2 WHERE id = ANY ($1)', [
          [application, cluster],
          otherOrgId,
        ]),
    },
    {
      name: 'groups are switched off',
      before: 'group',
      commit: () => app.dataSource.transaction((tx) => storeGroupSetting(tx, false)),
    },
  ];

  const grant = (clientId: string): GrantRequest => ({
    id: randomBytes(32),
    clientId,
    userId: person.id,
    sessionId: session.id,
    payload: {},
    expiresIn: 600,
  });
  /** Issues a grant for a client before the race. Returns its id. */
  async function grantOf(clientId: string): Promise<Buffer> {
    const request = grant(clientId);
    expect(await GRANT.issue(app.dataSource.manager, request)).toEqual({ issued: true });
    return request.id;
  }
  async function token(clientId: string): Promise<TokenRequest> {
    return {
      token: {
        model: 'AccessToken',
        id: randomBytes(32),
        payload: {},
        grantId: await grantOf(clientId),
        clientId,
        userId: person.id,
        userCode: null,
        expiresIn: 60,
      },
      audit: { auditId: randomUUID(), origin: ORIGIN, details: { client_id: clientId } },
    };
  }
  const tokenFor = async (applicationId: string): Promise<ClusterTokenRequest> => ({
    ...(await token('svc-cli')),
    applicationId,
  });

  /**
   * A kind of credential. `requests` makes one request that the change concerns, and one that it
   * does not.
   */
  interface Kind {
    readonly kind: IssuanceKind<never, true>;
    readonly requests: () => Promise<readonly [unknown, unknown]>;
  }
  const KINDS: Readonly<Record<string, Kind>> = {
    'a grant': {
      kind: GRANT,
      requests: async () => [grant(application), grant(otherApplication)],
    },
    'a token': {
      kind: USER_TOKEN,
      requests: async () => [await token(application), await token(otherApplication)],
    },
    'a token for a cluster': {
      kind: CLUSTER_TOKEN,
      requests: async () => [await tokenFor(cluster), await tokenFor(otherCluster)],
    },
  };

  const held = async () => [
    await count(app.dataSource, 'oauth_grants WHERE client_id = $1 AND user_id = $2', [
      application,
      person.id,
    ]),
    await count(
      app.dataSource,
      "oauth_artifacts WHERE model = 'AccessToken' AND (client_id = $1 OR application_id = $2)",
      [application, cluster],
    ),
  ];
  // `changed` is the denial of a batch that did not see the change. The service then decides each
  // request again alone.
  const denials = ['not_assigned', 'condition_unmet', 'gone', 'changed'];
  const isDenied = (outcome: Outcome<true> | undefined) =>
    outcome !== undefined && 'denial' in outcome && denials.includes(outcome.denial);

  describe.each(Object.entries(KINDS))('%s', (_, { kind, requests }) => {
    it.each(CHANGES)('is refused alone when $name', async ({ before, commit }) => {
      await reachBy(before);
      const [asked] = await requests();
      const outcome = await issueAcross(
        app.dataSource,
        () => kind.issue(app.dataSource.manager, asked as never),
        commit,
      );
      expect(outcome).toSatisfy(isDenied);
      await drain(app);
      await expect.poll(held).toEqual([0, 0]);
    });

    it.each(CHANGES)('is refused in a batch when $name', async ({ before, commit }) => {
      await reachBy(before);
      const asked = await requests();
      const [refused, other] = await issueAcross(
        app.dataSource,
        () => kind.issueUnlocked(app.dataSource.manager, asked as never),
        commit,
      );
      expect(refused).toSatisfy(isDenied);
      // If the batch did not issue to the neighbour, the request is repeated alone: the worker that
      // ends the reach may have locked a row of the neighbour.
      const neighbour = () => kind.issue(app.dataSource.manager, asked[1] as never);
      expect(other && 'issued' in other ? other : await neighbour()).toEqual({ issued: true });
      expect(await kind.issue(app.dataSource.manager, asked[0] as never)).toSatisfy(isDenied);
      await drain(app);
      await expect.poll(held).toEqual([0, 0]);
    });

    it.each(['everyone', 'person', 'group'] as const)(
      'is issued if nothing changes meanwhile, by %s',
      async (reach) => {
        await reachBy(reach);
        const [asked] = await requests();
        const outcome = await issueAcross(
          app.dataSource,
          () => kind.issue(app.dataSource.manager, asked as never),
          () => Promise.resolve(),
        );
        expect(outcome).toEqual({ issued: true });
      },
    );
  });

  it.each(CHANGES.slice(0, 2))(
    'a change that waits for an issuer ends what that issued: $name',
    async ({ before, commit }) => {
      await reachBy(before);
      const { manager } = app.dataSource;
      const change = await app.dataSource.transaction(async (tx) => {
        expect(await GRANT.issue(tx, grant(application))).toEqual({ issued: true });
        return { committed: commit() };
      });
      await change.committed;
      await drain(app);
      await expect.poll(held).toEqual([0, 0]);
      expect(await GRANT.issue(manager, grant(application))).toEqual({ denial: 'not_assigned' });
    },
  );

  it('records what ended with the switched-off groups, naming target and rule', async () => {
    await reachBy('group');
    await grantOf(application);
    await app.dataSource.transaction((tx) => storeGroupSetting(tx, false));
    await drain(app);
    await expect.poll(held).toEqual([0, 0]);
    const [ended] = await rows<{ details: object }>(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'access_ended' AND subject_id = $1 ORDER BY id DESC LIMIT 1",
      [person.id],
    );
    expect(ended?.details).toMatchObject({
      target: { kind: 'application', id: application },
      rule: 'rule',
      grants: 1,
    });
  });
});
