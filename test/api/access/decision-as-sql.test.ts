import { randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  NO_CONDITIONS,
  decideReach,
  type KeyTouch,
  type ReachDecision,
  type ReachFacts,
} from '#domain/access/reach/decision.js';
import { admits } from '#domain/access/reach/reach.repository.js';
import type { Denied, Outcome } from '#domain/access/issuance/issuance.repository.js';
import { AWS_TOKEN } from '#domain/aws/aws-tokens.repository.js';
import { GRANT } from '#domain/oauth/grants/grants.repository.js';
import { certificateKindOf } from '#domain/ssh/ssh-certificates.repository.js';
import { openPool } from '#platform/database/connection.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { RecordingLog } from '../../support/recording-log.js';

/** Two ages of a touch, and the limit that a condition sets between them, in seconds. */
const [FRESH, STALE, WITHIN] = [60, 7_200, 900];

/**
 * The states of one key in a session: the ages of its last touch (`at`) and of its last touch with
 * user verification (`uv`), or undefined without a touch.
 */
const TOUCHES_OF_KEY = [
  undefined,
  { at: FRESH, uv: null },
  { at: FRESH, uv: FRESH },
  { at: FRESH, uv: STALE },
  { at: STALE, uv: STALE },
] as const;

/**
 * The touches in a session: by a key that is not FIPS-certified (`other`) and by one that is
 * (`fips`).
 */
const TOUCHES = [
  ...TOUCHES_OF_KEY.map((other) => ({ other, fips: undefined })),
  ...TOUCHES_OF_KEY.slice(1).map((fips) => ({ other: undefined, fips })),
  { other: TOUCHES_OF_KEY[2], fips: TOUCHES_OF_KEY[4] },
  { other: TOUCHES_OF_KEY[2], fips: TOUCHES_OF_KEY[3] },
  { other: TOUCHES_OF_KEY[4], fips: TOUCHES_OF_KEY[1] },
];

const CONDITIONS = [null, WITHIN].flatMap((touchWithinSeconds) =>
  ([null, 'fips-only'] as const).flatMap((models) =>
    ([null, 'required'] as const).map((userVerification) => ({
      touchWithinSeconds,
      models,
      userVerification,
    })),
  ),
);

const BOTH = [true, false];

interface Case {
  readonly rule: number;
  readonly isMember: boolean;
  readonly isActive: boolean;
  readonly isAssigned: boolean;
  readonly isInGroup: boolean;
  readonly touches: (typeof TOUCHES)[number];
  readonly user: string;
  readonly session: string;
}

/** Every rule of a target: both kinds of access, each with every combination of conditions. */
const RULES = (['everyone', 'assigned'] as const).flatMap((access) =>
  CONDITIONS.map((conditions) => ({ access, ...conditions })),
);

const CASES: readonly Case[] = RULES.flatMap((_, rule) =>
  BOTH.flatMap((isMember) =>
    BOTH.flatMap((isActive) =>
      BOTH.flatMap((isAssigned) =>
        BOTH.flatMap((isInGroup) =>
          TOUCHES.map((touches) => ({
            rule,
            isMember,
            isActive,
            isAssigned,
            isInGroup,
            touches,
            user: randomUUID(),
            session: randomUUID(),
          })),
        ),
      ),
    ),
  ),
);

const clientOf = (rule: number) => `application-${rule}`;
const roleOf = (rule: number) => `arn:aws:iam::123456789012:role/r${rule}`;
const hostsOf = (rule: number) => `hosts-${rule}`;

describe('the decision as SQL', () => {
  const [own, other, group] = [randomUUID(), randomUUID(), randomUUID()];
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 5);
    await run(`INSERT INTO deployment (composition) VALUES ('test')`);
    await insertOrganizations();
    await insertTargets();
    await insertPeople();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const run = (statement: string, parameters: unknown[] = []) =>
    dataSource.query(statement, parameters);

  async function insertOrganizations(): Promise<void> {
    await run(
      `INSERT INTO organizations (id, name, aws_roles) VALUES ($1, 'own', 'listed'), ($2, 'other', 'listed')`,
      [own, other],
    );
    await run(
      `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at)
       VALUES ($1, 'own.example', true, now()), ($2, 'other.example', true, now())`,
      [own, other],
    );
    await run(`INSERT INTO groups (id, org_id, display_name) VALUES ($1, $2, 'the group')`, [
      group,
      own,
    ]);
  }

  /**
   * Inserts an application, a role of AWS and a group of hosts for each rule, and assigns each to
   * the SCIM group.
   */
  async function insertTargets(): Promise<void> {
    const owner = randomUUID();
    await run('INSERT INTO users (id, org_id) VALUES ($1, $2)', [owner, own]);
    const values = RULES.map((rule, n) => ({
      n,
      client_id: clientOf(n),
      role_arn: roleOf(n),
      hosts: hostsOf(n),
      access: rule.access,
      touch: rule.touchWithinSeconds,
      models: rule.models,
      uv: rule.userVerification,
    }));
    const listed = `jsonb_to_recordset($1::jsonb) AS r (n int, client_id text, role_arn text, hosts text,
      access text, touch int, models text, uv text)`;
    await run(
      `INSERT INTO oauth_clients (id, kind, metadata, org_id, owner_id) SELECT client_id, 'application', '{}', $2, $3 FROM ${listed}`,
      [JSON.stringify(values), own, owner],
    );
    await run(
      `INSERT INTO access_targets (org_id, kind, role_arn, name) SELECT $2, 'aws_role', role_arn, 'role' FROM ${listed}`,
      [JSON.stringify(values), own],
    );
    await run(
      `INSERT INTO access_targets (org_id, kind, name, hosts, logins) SELECT $2, 'host_group', hosts, '{*}', '{deploy}' FROM ${listed}`,
      [JSON.stringify(values), own],
    );
    await run(
      `UPDATE access_targets t SET access = r.access, touch_within_seconds = r.touch, models = r.models, user_verification = r.uv
       FROM ${listed} WHERE t.client_id = r.client_id OR t.role_arn = r.role_arn OR t.name = r.hosts`,
      [JSON.stringify(values)],
    );
    await run(
      'INSERT INTO access_assignments (target_id, group_id) SELECT id, $1 FROM access_targets',
      [group],
    );
  }

  /** Inserts for each case a person with a session, and what the case says about the two. */
  async function insertPeople(): Promise<void> {
    const values = CASES.map((each) => ({
      id: each.user,
      session: each.session,
      org: each.isMember ? own : other,
      domain: each.isMember ? 'own.example' : 'other.example',
      active: each.isActive,
      assigned: each.isAssigned,
      in_group: each.isInGroup,
      rule: each.rule,
      key: randomUUID(),
      client_id: clientOf(each.rule),
      role_arn: roleOf(each.rule),
      hosts: hostsOf(each.rule),
      touches: columnOf(each),
    }));
    const listed = `jsonb_to_recordset($1::jsonb) AS p (id uuid, session uuid, org uuid, domain text, active boolean,
      assigned boolean, in_group boolean, key uuid, client_id text, role_arn text, hosts text, touches jsonb)`;
    const all = [JSON.stringify(values)];
    await run(
      `INSERT INTO users (id, org_id, email, active) SELECT id, org, id || '@' || domain, active FROM ${listed}`,
      all,
    );
    await run(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT key, id, uuid_send(key), 'pem', 0, 'packed', true, 'key' FROM ${listed}`,
      all,
    );
    await run(
      `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, touches, expires_at)
       SELECT session, uuid_send(session), 'verified', id, key, now(), touches, now() + interval '8 hours' FROM ${listed}`,
      all,
    );
    await run(
      `INSERT INTO access_assignments (target_id, user_id)
       SELECT t.id, p.id FROM ${listed} JOIN access_targets t ON t.client_id = p.client_id OR t.role_arn = p.role_arn OR t.name = p.hosts
       WHERE p.assigned`,
      all,
    );
    await run(
      `INSERT INTO group_members (group_id, user_id) SELECT '${group}', id FROM ${listed} WHERE p.in_group`,
      all,
    );
  }

  const now = Date.now() / 1000;

  function touchesOf({ touches: { other: plain, fips } }: Case): KeyTouch[] {
    const touch = (ages: (typeof TOUCHES_OF_KEY)[number], isFips: boolean): KeyTouch[] =>
      ages === undefined
        ? []
        : [{ at: now - ages.at, uv: ages.uv === null ? null : now - ages.uv, fips: isFips }];
    return [...touch(plain, false), ...touch(fips, true)];
  }

  function columnOf(each: Case): Record<string, KeyTouch> {
    return Object.fromEntries(touchesOf(each).map((touch) => [randomUUID(), touch]));
  }

  function factsOf(each: Case, byGroups: boolean): ReachFacts {
    const rule = RULES[each.rule] ?? { access: 'assigned', ...NO_CONDITIONS };
    return {
      target: { orgId: own, ...rule },
      person: { orgId: each.isMember ? own : other, active: each.isActive },
      isAssigned: each.isAssigned,
      isInGroup: each.isInGroup && byGroups,
      touches: touchesOf(each),
    };
  }

  async function setByGroups(byGroups: boolean): Promise<void> {
    await run('UPDATE deployment SET access_by_groups = $1', [byGroups]);
  }

  describe.each([
    ['with groups that decide', true],
    ['without groups (SVC_ACCESS_BY_GROUPS=false)', false],
  ])('%s', (_, byGroups) => {
    beforeAll(() => setByGroups(byGroups));

    it('decides a grant to an application as the pure function does, in every combination', async () => {
      const outcomes = await GRANT.issueUnlocked(
        dataSource.manager,
        CASES.map((each) => ({
          id: randomBytes(32),
          clientId: clientOf(each.rule),
          userId: each.user,
          sessionId: each.session,
          payload: {},
          expiresIn: 600,
        })),
      );
      const expected = CASES.map((each) => wordOf(decideReach(factsOf(each, byGroups), now)));
      expect(outcomes.map(wordOfOutcome)).toEqual(expected);
      expect(new Set(expected)).toEqual(
        new Set(['issued', 'account_inactive', 'not_assigned', 'condition_unmet']),
      );
    });

    it('decides a token for a role as the pure function does, in every combination', async () => {
      const outcomes = await AWS_TOKEN.issueUnlocked(
        dataSource.manager,
        CASES.map((each) => ({
          userId: each.user,
          sessionId: each.session,
          roleArn: roleOf(each.rule),
          isReadOnly: false,
          email: `${each.user}@${each.isMember ? 'own.example' : 'other.example'}`,
          tokenId: randomUUID(),
          sourceIdentity: 'person',
          lifetime: 300,
          auditId: randomUUID(),
          origin: { requestId: randomUUID(), ip: undefined, userAgent: undefined },
        })),
      );
      const expected = CASES.map((each) => {
        const facts = factsOf(each, byGroups);
        // To a person of another organization the role is unlisted: the function gets no target.
        return wordOf(decideReach(each.isMember ? facts : { ...facts, target: null }, now));
      });
      expect(outcomes.map(wordOfOutcome)).toEqual(expected);
    });

    it('decides a certificate for a group of hosts as the pure function does, in every combination', async () => {
      const requests = CASES.map((each) => ({
        userId: each.user,
        sessionId: each.session,
        email: `${each.user}@${each.isMember ? 'own.example' : 'other.example'}`,
        keyId: 'key',
        keyFingerprint: 'SHA256:key',
        caFingerprint: 'SHA256:ca',
        isSecurityKey: false,
        attestationRequired: false,
        attestation: undefined,
        principalsDomain: undefined,
        principals: [],
        principalsElsewhere: [],
        groupPrincipals: [`deploy@${hostsOf(each.rule)}:${own}`],
        host: undefined,
        ttlSeconds: undefined,
        mostOnRecord: undefined,
        auditId: randomUUID(),
        origin: { requestId: randomUUID(), ip: undefined, userAgent: undefined },
      }));
      const [first] = requests;
      if (!first) throw new Error('there is no case');
      const outcomes = await certificateKindOf(first).issueUnlocked(dataSource.manager, requests);
      const expected = CASES.map((each) => {
        const facts = factsOf(each, byGroups);
        const word = wordOf(decideReach(each.isMember ? facts : { ...facts, target: null }, now));
        // A certificate without the principal of the group is then no refusal: the principal is
        // withheld.
        return word === 'not_assigned' ? 'withheld' : word;
      });
      expect(outcomes.map(wordOfOutcome)).toEqual(expected);
    });

    it('lists for each target the members that the pure function admits', async () => {
      const admitted = await sql<{ user_id: string; client_id: string }>(dataSource.manager)`
        SELECT u.id AS user_id, t.client_id FROM access_targets t JOIN users u ON u.org_id = t.org_id AND u.active
        WHERE t.kind = 'application' AND u.email IS NOT NULL AND ${admits(fragment`t`, fragment`u.id`)}`;
      const expected = CASES.filter((each) => each.isMember && each.isActive).flatMap((each) =>
        RULES.flatMap((_rule, n) => {
          const facts = factsOf({ ...each, rule: n }, byGroups);
          const isAssigned = each.isAssigned && n === each.rule;
          return decideReach({ ...facts, isAssigned, touches: null }, now).allowed
            ? [`${each.user} ${clientOf(n)}`]
            : [];
        }),
      );
      expect(admitted.map((row) => `${row.user_id} ${row.client_id}`).toSorted()).toEqual(
        expected.toSorted(),
      );
    });
  });

  it('names the conditions of the target in a denial', async () => {
    const denied = CASES.find(
      (each) => each.isMember && each.isActive && each.rule === 7 && each.touches === TOUCHES[0],
    );
    if (!denied) throw new Error('no case is denied');
    const [outcome] = await GRANT.issueUnlocked(dataSource.manager, [
      {
        id: randomBytes(32),
        clientId: clientOf(7),
        userId: denied.user,
        sessionId: denied.session,
        payload: {},
        expiresIn: 600,
      },
    ]);
    expect(outcome).toEqual({
      denial: 'condition_unmet',
      conditions: { touchWithinSeconds: WITHIN, models: 'fips-only', userVerification: 'required' },
    });
  });

  it('refuses a person of an organization to which the target does not belong, if it is assigned', async () => {
    const stranger = CASES.find(
      (each) => !each.isMember && each.isAssigned && each.isActive && each.rule === 8,
    );
    const [outcome] = await GRANT.issueUnlocked(dataSource.manager, [
      {
        id: randomBytes(32),
        clientId: clientOf(8),
        userId: stranger?.user ?? '',
        sessionId: stranger?.session ?? '',
        payload: {},
        expiresIn: 600,
      },
    ]);
    expect(outcome).toEqual({ denial: 'not_assigned' });
  });
});

const WORDS = {
  inactive: 'account_inactive',
  not_assigned: 'not_assigned',
  touch: 'condition_unmet',
  models: 'condition_unmet',
  user_verification: 'condition_unmet',
} as const;

function wordOf(decision: ReachDecision): string {
  return decision.allowed ? 'issued' : WORDS[decision.because];
}

function wordOfOutcome(outcome: Outcome<unknown>): string {
  return 'issued' in outcome ? 'issued' : (outcome satisfies Denied).denial;
}
