import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { writePrivateKey } from '@svc/openssh';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Issuance, type IssuanceKind } from '#domain/access/issuance/issuance.repository.js';
import { AWS_TOKEN } from '#domain/aws/aws-tokens.repository.js';
import { GITHUB_TOKEN } from '#domain/github/tokens/github-tokens.repository.js';
import { GRANT } from '#domain/oauth/grants/grants.repository.js';
import { CLUSTER_TOKEN, USER_TOKEN } from '#domain/oauth/grants/tokens.repository.js';
import { certificateKindOf } from '#domain/ssh/ssh-certificates.repository.js';
import { assign, makeRole, makeScimGroup, setRule, unassign } from '../../support/access-rows.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { deprovision } from '../../support/deprovisioning.js';
import { certificateRequest, ReachWorld, type Person } from '../../support/reach-world.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';
import '../../support/full-scale-only.js';

const RACES = atScale({ small: 20, full: 500 });
const ORIGIN = { requestId: 'request-1', ip: undefined, userAgent: undefined };
const DOMAIN = 'storm.example';
const ROLE = 'arn:aws:iam::123456789012:role/storm';

/** The number of storms, and of the requests that each sends at once. */
const [STORMS, AT_ONCE] = [atScale({ small: 2, full: 10 }), 20];

describe('two replicas that issue while a reach ends', () => {
  let database: TestDatabase;
  let replicas: TestApp[];
  let app: TestApp;
  let organization: ScimOrganization;
  let world: ReachWorld;
  let role: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    const { privateKey } = generateKeyPairSync('ed25519');
    const environment = { SVC_SSH_CA_KEY: writePrivateKey(privateKey, 'ca') };
    const options = { database, environment };
    replicas = [await startTestApp(options), await startTestApp(options)];
    [app] = replicas as [TestApp, TestApp];
    organization = await foundOrganization(app, DOMAIN);
    world = await ReachWorld.found(app.dataSource, DOMAIN);
    role = await makeRole(app.dataSource, world.orgId, ROLE);
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await database.drop();
  });

  type Issued = IssuanceKind<unknown, unknown>;

  /** Requests a credential at a replica. Returns false if the replica refuses. */
  async function issue(replica: TestApp, kind: unknown, request: object): Promise<boolean> {
    const issuance = replica.nest.get(Issuance, { strict: false });
    return 'issued' in (await issuance.issue(kind as Issued, request));
  }

  const tokenOn = (grantId: Buffer, clientId: string, { id: userId }: Person) => ({
    token: {
      model: 'AccessToken',
      id: randomBytes(32),
      payload: {},
      grantId,
      clientId,
      userId,
      userCode: null,
      expiresIn: 600,
    },
    audit: { auditId: randomUUID(), origin: ORIGIN, details: {} },
  });

  /**
   * Requests a grant and then a token below it at a replica. Returns false if either is refused.
   */
  async function issueAt(replica: TestApp, person: Person): Promise<boolean> {
    const { id: userId, sessionId } = person;
    const { clientId } = world;
    const id = randomBytes(32);
    const grant = { id, clientId, userId, sessionId, payload: {}, expiresIn: 600 };
    if (!(await issue(replica, GRANT, grant))) return false;
    return issue(replica, USER_TOKEN, tokenOn(id, clientId, person));
  }

  async function issueForCluster(replica: TestApp, person: Person): Promise<boolean> {
    const [grant] = await rows<{ id: Buffer }>(
      app.dataSource,
      `SELECT id FROM oauth_grants WHERE user_id = $1 AND client_id = 'svc-cli'`,
      [person.id],
    );
    if (!grant) return false;
    const token = tokenOn(grant.id, 'svc-cli', person);
    return issue(replica, CLUSTER_TOKEN, { ...token, applicationId: world.clusterId });
  }

  async function issueCertificate(replica: TestApp, person: Person): Promise<boolean> {
    const request = await certificateRequest(app.dataSource, world.targets.hosts, person);
    return issue(replica, certificateKindOf(request), request);
  }

  const issueForGitHub = (replica: TestApp, { id: userId, sessionId }: Person) =>
    issue(replica, GITHUB_TOKEN, {
      id: randomUUID(),
      userId,
      orgId: world.orgId,
      sessionId,
      installationId: world.installationId,
      owner: 'octo',
      sealed: 'sealed',
      expiresAt: new Date(Date.now() + 3_600_000),
      repositories: ['hello'],
      permissions: {},
      auditId: randomUUID(),
      origin: ORIGIN,
    });

  const issueForAws = (replica: TestApp, { id: userId, email, sessionId }: Person) =>
    issue(replica, AWS_TOKEN, {
      userId,
      sessionId,
      email,
      roleArn: ROLE,
      isReadOnly: false,
      tokenId: randomUUID(),
      sourceIdentity: 'person',
      lifetime: 300,
      auditId: randomUUID(),
      origin: ORIGIN,
    });

  /**
   * A kind of credential: its target, a request for it, and the number of them that a person holds.
   */
  interface Kind {
    readonly target: () => string;
    readonly issue: (replica: TestApp, person: Person) => Promise<boolean>;
    readonly held: (person: Person) => Promise<number>;
    /** True if the service cannot revoke what it issued. The count of these only must not grow. */
    readonly lasts?: true;
  }

  const counted = (fromWhere: string, ...parameters: unknown[]) =>
    count(app.dataSource, fromWhere, parameters);

  const KINDS: Readonly<Record<string, Kind>> = {
    'tokens of the application': {
      target: () => world.targets.application,
      issue: issueAt,
      held: ({ id }) =>
        counted(
          `(SELECT id FROM oauth_grants WHERE user_id = $1 AND client_id = $2
            UNION ALL SELECT id FROM oauth_artifacts WHERE user_id = $1 AND client_id = $2) held`,
          id,
          world.clientId,
        ),
    },
    certificates: {
      target: () => world.targets.hosts,
      issue: issueCertificate,
      held: ({ id }) => counted('ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL', id),
    },
    'tokens for the cluster': {
      target: () => world.targets.cluster,
      issue: issueForCluster,
      held: ({ id }) =>
        counted('oauth_artifacts WHERE user_id = $1 AND application_id = $2', id, world.clusterId),
    },
    'tokens for GitHub': {
      target: () => world.targets.installation,
      issue: issueForGitHub,
      held: ({ id }) => counted('github_tokens WHERE user_id = $1 AND next_attempt_at IS NULL', id),
    },
    'tokens for AWS': {
      target: () => role,
      issue: issueForAws,
      held: ({ id }) =>
        counted(`audit_events WHERE subject_id = $1 AND type = 'aws_credential'`, id),
      lasts: true,
    },
  };

  const REMOVALS: Readonly<Record<string, (group: string, person: Person) => Promise<unknown>>> = {
    'a PATCH that removes the member': (group, { id }) =>
      organization.scim('PATCH', `/Groups/${group}`, {
        Operations: [{ op: 'remove', path: `members[value eq "${id}"]` }],
      }),
    'a PUT without the member': (group) =>
      organization.scim('PUT', `/Groups/${group}`, { displayName: group, members: [] }),
    'a DELETE of the group': (group) => organization.scim('DELETE', `/Groups/${group}`),
    'a DELETE of the person': (_, { id }) => organization.scim('DELETE', `/Users/${id}`),
  };

  it(`issues nothing after the answer, in ${RACES} races`, { timeout: 600_000 }, async () => {
    const kinds = Object.entries(KINDS);
    for (const [, { target }] of kinds) {
      await setRule(app.dataSource, target(), { access: 'assigned' });
    }
    // The 5 kinds and the 4 removals take turns, so that 20 races contain each pair once.
    const removals = Object.values(REMOVALS);
    const issuedByAll: Record<string, number> = {};
    for (let race = 0; race < RACES; race += 1) {
      const [name, kind] = kinds[race % kinds.length] as [string, Kind];
      const person = await world.person();
      const group = await makeScimGroup(organization, `group ${race}`, [person.id]);
      await assign(app.dataSource, kind.target(), { groupId: group });
      let issued = 0;
      const underWay = Promise.withResolvers<void>();
      const storm = [0, 1, 2, 3].map(async (worker) => {
        while (await kind.issue(replicas[worker % 2] as TestApp, person)) {
          issued += 1;
          if (issued === 4) underWay.resolve();
        }
        underWay.resolve();
      });
      await underWay.promise;
      await removals[race % removals.length]?.(group, person);
      const atAnswer = await kind.held(person);
      await Promise.all(storm);
      expect([race, name, await kind.held(person)]).toEqual([race, name, atAnswer]);
      if (kind.lasts !== true) expect([race, name, atAnswer]).toEqual([race, name, 0]);
      expect(issued).toBeGreaterThanOrEqual(4);
      issuedByAll[name] = (issuedByAll[name] ?? 0) + issued;
    }
    const all = Object.entries(issuedByAll).map(([name, n]) => `${n} ${name}`);
    process.stdout.write(`${RACES} races: ${all.join(', ')} issued, none after an answer\n`);
  });

  const CHANGES: Readonly<Record<string, (scene: Scene, n: number) => Promise<unknown>>> = {
    'SCIM PATCH of the group': async ({ group, people }, n) => {
      const member = people[n % people.length] as Person;
      const op = n % 2 === 0 ? 'add' : 'remove';
      const operation =
        op === 'add'
          ? { op, path: 'members', value: [{ value: member.id }] }
          : { op, path: `members[value eq "${member.id}"]` };
      return orderly(
        await organization.scim('PATCH', `/Groups/${group}`, { Operations: [operation] }),
      );
    },
    'DELETE of the group': async ({ group }) =>
      orderly(await organization.scim('DELETE', `/Groups/${group}`)),
    'a change of the rule': ({ target }, n) =>
      setRule(app.dataSource, target, { access: n % 2 === 0 ? 'everyone' : 'assigned' }),
    'a change of the assignments': ({ target, group }, n) =>
      app.dataSource.transaction(async (tx) => {
        await tx.query('UPDATE access_targets SET version = version + 1 WHERE id = $1', [target]);
        await unassign(tx, target, { groupId: group });
        if (n % 2 === 0) {
          await tx.query(
            `INSERT INTO access_assignments (target_id, group_id) SELECT $1, id FROM groups WHERE id = $2`,
            [target, group],
          );
        }
      }),
    'DELETE of a person': async ({ people }, n) =>
      orderly(await organization.scim('DELETE', `/Users/${people[n % people.length]?.id}`)),
    'a removal by an admin': ({ people }, n) =>
      app.dataSource
        .transaction((tx) =>
          deprovision(app).remove(tx, {
            userId: people[n % people.length]?.id ?? '',
            reason: 'a test',
            revokedBy: 'scim',
            audit: { type: 'scim_operation', actorId: null, origin: ORIGIN },
          }),
        )
        .catch(ignoreGone),
    'the removal of the application': ({ clientId }) =>
      app.dataSource.query('DELETE FROM oauth_clients WHERE id = $1', [clientId]),
  };

  interface Scene {
    readonly group: string;
    readonly target: string;
    readonly clientId: string;
    readonly people: readonly Person[];
  }

  it.each(Object.keys(CHANGES))(
    `20 issuers at once beside %s: no error`,
    { timeout: 120_000 },
    async (name) => {
      const change = CHANGES[name] as (typeof CHANGES)[string];
      const before = await deadlocks();
      for (let storm = 0; storm < STORMS; storm += 1) {
        world = await ReachWorld.found(app.dataSource, DOMAIN);
        const people = await world.people(5);
        const group = await makeScimGroup(
          organization,
          randomUUID(),
          people.map(({ id }) => id),
        );
        const { clientId } = world;
        const target = world.targets.application;
        await assign(app.dataSource, target, { groupId: group });
        await setRule(app.dataSource, target, { access: 'assigned' });
        const scene = { group, target, clientId, people };
        const issuers = Array.from({ length: AT_ONCE }, (_, n) =>
          issueAt(replicas[n % 2] as TestApp, people[n % people.length] as Person),
        );
        const changes = Array.from({ length: AT_ONCE }, (_, n) => change(scene, n));
        const results = await Promise.allSettled([...issuers, ...changes]);
        expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
      }
      process.stdout.write(`beside ${name}: ${(await deadlocks()) - before} deadlocks, retried\n`);
    },
  );

  async function deadlocks(): Promise<number> {
    await rows(app.dataSource, 'SELECT pg_stat_force_next_flush()');
    const [row] = await rows<{ n: number }>(
      app.dataSource,
      'SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()',
    );
    return row?.n ?? 0;
  }
});

/**
 * Checks that an answer is a success, a 404 because another request removed the resource, or a 429.
 */
function orderly(answer: { readonly status: number; readonly text: string }): void {
  expect([200, 204, 404, 429], answer.text).toContain(answer.status);
}

function ignoreGone(error: unknown): void {
  if (!String(error).includes('not_found') && !String(error).includes('no such')) throw error;
}
