import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';

/** Somebody with a key, made by SQL alone. */
export interface PersonRow {
  readonly id: string;
  readonly email: string;
  readonly orgId: string | null;
  readonly keyId: string;
}

/** A session of somebody, and its own token. */
export interface SessionRow {
  readonly id: string;
  readonly token: string;
}

/** How a session or a token is not as most are. */
export interface TokenOptions {
  readonly clientId?: string;
  /** Of the session that the grant hangs on. */
  readonly level?: 'verified' | 'synthetic';
  readonly session?: SessionRow;
  /** Over the payload of an opaque, unbound token with the scope `svc:credentials`. */
  readonly payload?: object;
  readonly model?: string;
  /** Seconds from now at which each ends. */
  readonly expiresIn?: {
    readonly token?: number;
    readonly grant?: number;
    readonly session?: number;
  };
  readonly consumed?: boolean;
}

/** Fills the tables of people, sessions and OAuth as the service itself would, but with whatever a test wants in them. */
export class OauthRows {
  constructor(private readonly dataSource: DataSource) {}

  async person(
    options: { readonly organization?: boolean; readonly admin?: boolean } = {},
  ): Promise<PersonRow> {
    const { organization = true, admin = false } = options;
    const [id, keyId] = [randomUUID(), randomUUID()];
    const orgId = organization ? randomUUID() : null;
    const domain = `${id.slice(0, 8)}.example`;
    const email = `ada@${domain}`;
    if (orgId !== null) {
      await this.#run('INSERT INTO organizations (id, name) VALUES ($1, $2)', [orgId, domain]);
      await this.#run(
        `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ($1, $2, true, now())`,
        [orgId, domain],
      );
    }
    await this.#run('INSERT INTO users (id, org_id, email, is_org_admin) VALUES ($1, $2, $3, $4)', [
      id,
      orgId,
      email,
      admin,
    ]);
    await this.#run(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       VALUES ($1, $2, $3, 'pem', 0, 'packed', true, 'key')`,
      [keyId, id, randomBytes(16)],
    );
    return { id, email, orgId, keyId };
  }

  async session(
    person: PersonRow,
    options: {
      readonly level?: 'bootstrap' | 'verified' | 'synthetic';
      readonly clientId?: string;
      readonly expiresIn?: number;
    } = {},
  ): Promise<SessionRow> {
    const { level = 'verified', clientId = null, expiresIn = 28_800 } = options;
    const [id, token] = [randomUUID(), randomBytes(32).toString('base64url')];
    const key = level === 'verified' ? person.keyId : null;
    await this.#run(
      `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, client_id, auth_time, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now(), now() + make_interval(secs => $7))`,
      [id, sha256(token), level, person.id, key, clientId, expiresIn],
    );
    return { id, token };
  }

  /** A client that registered itself, as anybody may. */
  async client(): Promise<string> {
    const id = randomUUID();
    await this.#run(`INSERT INTO oauth_clients (id, kind, metadata) VALUES ($1, 'dynamic', '{}')`, [
      id,
    ]);
    return id;
  }

  /** A client that somebody registered. */
  async application(owner: PersonRow): Promise<string> {
    const id = randomUUID();
    await this.#run(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id) VALUES ($1, 'application', '{}', $2, $3)`,
      [id, owner.id, owner.orgId],
    );
    return id;
  }

  /** A token on a grant on a session of its own, unless told otherwise; svc-cli's with `svc:credentials` by default. */
  async token(person: PersonRow, options: TokenOptions = {}): Promise<string> {
    const {
      clientId = 'svc-cli',
      level = 'verified',
      expiresIn = {},
      model = 'AccessToken',
    } = options;
    const session =
      options.session ??
      (await this.session(person, { level, clientId, expiresIn: expiresIn.session ?? 28_800 }));
    const [token, grantId] = [randomBytes(32).toString('base64url'), randomBytes(32)];
    await this.#run(
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       VALUES ($1, $2, $3, $4, '{}', now() + make_interval(secs => $5))`,
      [grantId, clientId, person.id, session.id, expiresIn.grant ?? 3600],
    );
    const payload = {
      kind: model,
      clientId,
      accountId: person.id,
      scope: 'openid svc:credentials',
      ...options.payload,
    };
    await this.artifact(model, token, {
      payload,
      grantId,
      clientId,
      userId: person.id,
      expiresIn: expiresIn.token ?? 3600,
      consumed: options.consumed ?? false,
    });
    return token;
  }

  /** A row of the OAuth library under one of its ids. */
  async artifact(
    model: string,
    libraryId: string,
    row: {
      readonly payload?: object;
      readonly grantId?: Buffer;
      readonly clientId?: string;
      readonly userId?: string;
      readonly expiresIn?: number;
      readonly consumed?: boolean;
    },
  ): Promise<void> {
    await this.#run(
      `INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, consumed_at, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $7 THEN now() END, now() + make_interval(secs => $8))`,
      [
        model,
        sha256(libraryId),
        JSON.stringify(row.payload ?? {}),
        row.grantId ?? null,
        row.clientId ?? null,
        row.userId ?? null,
        row.consumed ?? false,
        row.expiresIn ?? 3600,
      ],
    );
  }

  async #run(statement: string, parameters: unknown[]): Promise<void> {
    await this.dataSource.query(statement, parameters);
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
