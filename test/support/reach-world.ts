import { randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import type { SshCertificateRequest } from '#domain/ssh/ssh-certificates.repository.js';
import { makeHostGroup, targetOfClient, targetOfInstallation } from './access-rows.js';
import { OauthRows, type UserRow } from './oauth-rows.js';
import { rows } from './rows.js';

/** A member of the organization of a {@link ReachWorld}, with a session. */
export interface Person {
  readonly id: string;
  readonly email: string;
  readonly sessionId: string;
}

/** The SQL for a table `p` of people, which it reads from the JSON array in `$1`. */
const LISTED = `jsonb_to_recordset($1::jsonb) AS p (id uuid, email text, "sessionId" uuid)`;

/** The ids of the targets (rows of `access_targets`) of a {@link ReachWorld}, one of each kind. */
export interface Targets {
  readonly application: string;
  readonly cluster: string;
  readonly hosts: string;
  readonly installation: string;
}

/**
 * The numbers of valid items that a person got from targets: grants, codes, tokens, certificates
 * and so on.
 */
export interface Held {
  readonly grants: number;
  readonly codes: number;
  readonly tokens: number;
  readonly clusterTokens: number;
  readonly certificates: number;
  readonly githubTokens: number;
}

/** The items of a person whom every target admits. */
export const ALL_HELD: Held = {
  grants: 1,
  codes: 1,
  tokens: 1,
  clusterTokens: 1,
  certificates: 1,
  githubTokens: 1,
};

/** The items of a person whom no target admits. */
export const NONE_HELD: Held = {
  grants: 0,
  codes: 0,
  tokens: 0,
  clusterTokens: 0,
  certificates: 0,
  githubTokens: 0,
};

/**
 * An organization with one target of each kind, and people who have got items (grants, certificates
 * and so on) from these targets. A test removes people from a target, and checks which items end.
 */
export class ReachWorld {
  private constructor(
    private readonly dataSource: DataSource,
    readonly orgId: string,
    readonly domain: string,
    readonly clientId: string,
    readonly clusterId: string,
    readonly installationId: number,
    readonly targets: Targets,
  ) {}

  /**
   * Adds one target of each kind to the organization of a domain. By default the domain and the
   * organization are new.
   */
  static async found(
    dataSource: DataSource,
    domain = `${randomUUID().slice(0, 8)}.example`,
  ): Promise<ReachWorld> {
    const orgId = await organizationOf(dataSource, domain);
    const owner = await insertPerson(dataSource, orgId, `owner-${randomUUID()}@${domain}`);
    const clientId = await new OauthRows(dataSource).application(owner);
    const clusterId = randomUUID();
    await dataSource.query(
      `INSERT INTO oauth_clients (id, kind, metadata, org_id, resource) VALUES ($1, 'kubernetes', '{}', $2, $3)`,
      [clusterId, orgId, `urn:svc:${orgId}:${clusterId}`],
    );
    const installationId = randomBytes(4).readUInt32BE();
    await dataSource.query(
      `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
       VALUES ($1, $2, $1, 'octo', 'all', now(), $3)`,
      [installationId, orgId, owner.id],
    );
    const targets = {
      application: await targetOfClient(dataSource, clientId),
      cluster: await targetOfClient(dataSource, clusterId),
      hosts: await makeHostGroup(dataSource, orgId, `g${randomBytes(4).toString('hex')}`, [
        'deploy',
      ]),
      installation: await targetOfInstallation(dataSource, installationId),
    };
    return new ReachWorld(dataSource, orgId, domain, clientId, clusterId, installationId, targets);
  }

  /**
   * Adds a person with a session, and with one item (a grant, a certificate and so on) from each
   * target.
   */
  async person(): Promise<Person> {
    const [person] = await this.people(1);
    if (!person) throw new Error('no person was added');
    return person;
  }

  /**
   * Adds people with sessions. Each gets one item from each target, or only a grant and a token of
   * the application.
   */
  async people(size: number, holding: 'all' | 'a token' = 'all'): Promise<Person[]> {
    const people = Array.from({ length: size }, () => {
      const id = randomUUID();
      return { id, email: `${id}@${this.domain}`, sessionId: randomUUID() };
    });
    const run = (statement: string, ...more: unknown[]) =>
      this.dataSource.query(statement, [JSON.stringify(people), ...more]);
    await run(
      `INSERT INTO users (id, org_id, email) SELECT id, $2, email FROM ${LISTED}`,
      this.orgId,
    );
    await run(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       SELECT id, id, uuid_send(id), 'pem', 0, 'packed', true, 'key' FROM ${LISTED}`,
    );
    await run(
      `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
       SELECT "sessionId", sha256(uuid_send("sessionId")), 'verified', id, id, now(), now() + interval '8 hours' FROM ${LISTED}`,
    );
    await (holding === 'all' ? this.hold(people) : this.#holdTokens(people));
    return people;
  }

  /** Gives people one item (a grant, a certificate and so on) from each target. */
  async hold(people: readonly Person[]): Promise<void> {
    const run = (statement: string, ...more: unknown[]) =>
      this.dataSource.query(statement, [JSON.stringify(people), ...more]);
    await this.#holdTokens(people);
    await this.#grant(people, 'svc-cli');
    await this.#artifact(people, 'AuthorizationCode');
    await run(
      `INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, application_id, expires_at)
       SELECT 'AccessToken', sha256(convert_to('cluster' || id, 'UTF8')), '{}', sha256(convert_to(id || 'svc-cli', 'UTF8')), 'svc-cli', id, $2,
              now() + interval '1 hour' FROM ${LISTED}`,
      this.clusterId,
    );
    await run(
      `WITH given AS (
         INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
         SELECT nextval('ssh_certificate_serial'), p.id, t.org_id, p."sessionId", 'k', ARRAY[p.email] || t.principals, 'SHA256:k', 'SHA256:ca', now(),
                now() + interval '8 hours'
         FROM ${LISTED} CROSS JOIN access_targets t WHERE t.id = $2
         RETURNING serial, user_id, session_id, valid_before
       )
       INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
       SELECT t.id, g.serial, g.user_id, g.session_id, t.principals, g.valid_before FROM given g CROSS JOIN access_targets t
       WHERE t.id = $2`,
      this.targets.hosts,
    );
    await run(
      `INSERT INTO github_tokens (id, installation_id, owner, user_id, org_id, session_id, sealed, permissions, expires_at)
       SELECT gen_random_uuid(), $2, 'octo', id, $3, "sessionId", 'sealed', '{}', now() + interval '1 hour' FROM ${LISTED}`,
      this.installationId,
      this.orgId,
    );
  }

  async #holdTokens(people: readonly Person[]): Promise<void> {
    await this.#grant(people, this.clientId);
    await this.#artifact(people, 'AccessToken');
  }

  #grant(people: readonly Person[], clientId: string): Promise<unknown> {
    return this.dataSource.query(
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       SELECT sha256(convert_to(id || $2::text, 'UTF8')), $2, id, "sessionId", '{}', now() + interval '8 hours' FROM ${LISTED}`,
      [JSON.stringify(people), clientId],
    );
  }

  /**
   * Inserts a code or a token (`model`) for each person. It belongs to the person's grant to the
   * application.
   */
  #artifact(people: readonly Person[], model: string): Promise<unknown> {
    return this.dataSource.query(
      `INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
       SELECT $2::text, sha256(convert_to($2 || id || $3::text, 'UTF8')), '{}', sha256(convert_to(id || $3, 'UTF8')), $3, id,
              now() + interval '1 hour' FROM ${LISTED}`,
      [JSON.stringify(people), model, this.clientId],
    );
  }

  /** Counts the valid items that a person has. */
  async held({ id }: Pick<Person, 'id'>): Promise<Held> {
    const [held] = await rows<Held>(
      this.dataSource,
      `SELECT (SELECT count(*)::int FROM oauth_grants WHERE user_id = $1 AND client_id = $2) AS grants,
              (SELECT count(*)::int FROM oauth_artifacts WHERE user_id = $1 AND model = 'AuthorizationCode') AS codes,
              (SELECT count(*)::int FROM oauth_artifacts WHERE user_id = $1 AND model = 'AccessToken' AND client_id = $2) AS tokens,
              (SELECT count(*)::int FROM oauth_artifacts WHERE user_id = $1 AND application_id = $3) AS "clusterTokens",
              (SELECT count(*)::int FROM ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL) AS certificates,
              (SELECT count(*)::int FROM github_tokens WHERE user_id = $1 AND next_attempt_at IS NULL) AS "githubTokens"`,
      [id, this.clientId, this.clusterId],
    );
    if (!held) throw new Error('SELECT returned no row');
    return held;
  }

  /** Counts the valid items that all people of the organization have. */
  async heldByAll(): Promise<number> {
    const [held] = await rows<{ n: number }>(
      this.dataSource,
      `SELECT ((SELECT count(*) FROM oauth_grants WHERE client_id = $1)
             + (SELECT count(*) FROM oauth_artifacts WHERE client_id = $1 OR application_id = $2)
             + (SELECT count(*) FROM ssh_certificates WHERE org_id = $3 AND revoked_at IS NULL)
             + (SELECT count(*) FROM github_tokens WHERE org_id = $3 AND next_attempt_at IS NULL))::int AS n`,
      [this.clientId, this.clusterId, this.orgId],
    );
    return held?.n ?? 0;
  }
}

/** Returns the values with which a person requests an SSH certificate for the hosts of a group. */
export async function certificateRequest(
  dataSource: DataSource,
  targetId: string,
  { id: userId, email, sessionId }: Person,
): Promise<SshCertificateRequest> {
  const [hosts] = await rows<{ principals: string[] }>(
    dataSource,
    'SELECT principals FROM access_targets WHERE id = $1',
    [targetId],
  );
  return {
    userId,
    sessionId,
    email,
    keyId: 'key',
    keyFingerprint: 'SHA256:key',
    caFingerprint: 'SHA256:ca',
    isSecurityKey: false,
    attestationRequired: false,
    attestation: undefined,
    principalsDomain: undefined,
    principals: [],
    principalsElsewhere: [],
    groupPrincipals: hosts?.principals ?? [],
    host: undefined,
    ttlSeconds: undefined,
    mostOnRecord: undefined,
    auditId: randomUUID(),
    origin: { requestId: 'request-1', ip: undefined, userAgent: undefined },
  };
}

/** An audit event that says that a target does not admit a person any more. */
export interface EndedEvent {
  readonly subject_id: string;
  readonly actor_id: string | null;
  readonly org_id: string;
  readonly details: {
    readonly target: { readonly kind: string; readonly id: string; readonly name: string };
    readonly rule: string;
    readonly scim_token_id?: string;
  };
}

/** Lists the audit events of ended access to targets, the oldest first. */
export function endedEvents(dataSource: DataSource): Promise<EndedEvent[]> {
  return rows(
    dataSource,
    `SELECT subject_id, actor_id, org_id, details FROM audit_events WHERE type = 'access_ended' ORDER BY id`,
  );
}

async function organizationOf(dataSource: DataSource, domain: string): Promise<string> {
  const [known] = await rows<{ org_id: string }>(
    dataSource,
    'SELECT org_id FROM organization_domains WHERE domain = $1',
    [domain],
  );
  if (known) return known.org_id;
  const id = randomUUID();
  await dataSource.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [id, domain]);
  await dataSource.query(
    `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ($1, $2, true, now())`,
    [id, domain],
  );
  return id;
}

async function insertPerson(
  dataSource: DataSource,
  orgId: string,
  email: string,
): Promise<UserRow> {
  const id = randomUUID();
  await dataSource.query('INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)', [
    id,
    orgId,
    email,
  ]);
  return { id, email, orgId, keyId: '' };
}
