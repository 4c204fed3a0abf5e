import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';

/** A user with a key, inserted by SQL. */
export interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly orgId: string | null;
  readonly keyId: string;
}

/** A session of a user, and its token. */
export interface SessionRow {
  readonly id: string;
  readonly token: string;
}

/**
 * The ways in which an inserted session or token differs from the defaults of {@link
 * OauthRows.token}.
 */
export interface TokenOptions {
  readonly clientId?: string;
  /** The level of the session to which the grant belongs. */
  readonly level?: 'verified' | 'synthetic';
  readonly session?: SessionRow;
  /**
   * Members that replace those of the token's payload. Without them, the token is opaque and bound
   * to no key, and has the scope `svc:credentials`.
   */
  readonly payload?: object;
  readonly model?: string;
  /** The seconds until the token, the grant and the session expire. */
  readonly expiresIn?: {
    readonly token?: number;
    readonly grant?: number;
    readonly session?: number;
  };
  readonly consumed?: boolean;
}

/**
 * Inserts users, sessions and OAuth rows into the tables of the service, with any values that a
 * test needs.
 */
export class OauthRows {
  constructor(private readonly dataSource: DataSource) {}

  async user(
    options: { readonly organization?: boolean; readonly admin?: boolean } = {},
  ): Promise<UserRow> {
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
    user: UserRow,
    options: {
      readonly level?: 'bootstrap' | 'verified' | 'synthetic';
      readonly clientId?: string;
      readonly expiresIn?: number;
    } = {},
  ): Promise<SessionRow> {
    const { level = 'verified', clientId = null, expiresIn = 28_800 } = options;
    const [id, token] = [randomUUID(), randomBytes(32).toString('base64url')];
    const key = level === 'verified' ? user.keyId : null;
    await this.#run(
      `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, client_id, auth_time, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now(), now() + make_interval(secs => $7))`,
      [id, sha256(token), level, user.id, key, clientId, expiresIn],
    );
    return { id, token };
  }

  /** Inserts an OAuth client that registered itself. Returns its id. */
  async client(): Promise<string> {
    const id = randomUUID();
    await this.#run(`INSERT INTO oauth_clients (id, kind, metadata) VALUES ($1, 'dynamic', '{}')`, [
      id,
    ]);
    return id;
  }

  /** Inserts an OAuth client that a user registered. Returns its id. */
  async application(owner: UserRow): Promise<string> {
    const id = randomUUID();
    await this.#run(
      `INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id) VALUES ($1, 'application', '{}', $2, $3)`,
      [id, owner.id, owner.orgId],
    );
    return id;
  }

  /**
   * Inserts a token, by default with a new session and grant. The defaults are the client svc-cli
   * and the scope `svc:credentials`.
   */
  async token(user: UserRow, options: TokenOptions = {}): Promise<string> {
    const {
      clientId = 'svc-cli',
      level = 'verified',
      expiresIn = {},
      model = 'AccessToken',
    } = options;
    const session =
      options.session ??
      (await this.session(user, { level, clientId, expiresIn: expiresIn.session ?? 28_800 }));
    const [token, grantId] = [randomBytes(32).toString('base64url'), randomBytes(32)];
    await this.#run(
      `INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
       VALUES ($1, $2, $3, $4, '{}', now() + make_interval(secs => $5))`,
      [grantId, clientId, user.id, session.id, expiresIn.grant ?? 3600],
    );
    const payload = {
      kind: model,
      clientId,
      accountId: user.id,
      scope: 'openid svc:credentials',
      ...options.payload,
    };
    await this.artifact(model, token, {
      payload,
      grantId,
      clientId,
      userId: user.id,
      expiresIn: expiresIn.token ?? 3600,
      consumed: options.consumed ?? false,
    });
    return token;
  }

  /**
   * Inserts a row of the OAuth library (a token, a code and so on). `libraryId` is the library's
   * secret id, and the table gets only its SHA-256.
   */
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
