import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { DataSource, type Logger } from 'typeorm';
import { Issuance } from '#domain/access/issuance/issuance.repository.js';
import { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';
import {
  type SshRequestedCertificate,
  type IssuedCertificate,
  CertificateIssuance,
  type IssuingSession,
} from '#domain/ssh/certificate-issuance.service.js';
import { publicKeyBlob, publicKeyLine, writePrivateKey, sshFingerprint } from '@svc/openssh';
import type { Signer } from '#platform/crypto/signer.js';
import type { PrincipalKind } from '#domain/ssh/principals.js';
import { createTestDatabase } from './database.js';

const SUBJECT = publicKeyBlob(generateKeyPairSync('ed25519').privateKey);
const CA_KEY = writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca');

/** The public key in each certificate request of these tests. */
export const PUBLIC_KEY = publicKeyLine(SUBJECT, 'alice@laptop');
export const FINGERPRINT = sshFingerprint(SUBJECT);
export const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };

/** The code that issues SSH certificates, with a real database and without HTTP. */
export class SshIssuance {
  private constructor(
    readonly dataSource: DataSource,
    /** Every SQL statement that was sent so far. */
    readonly statements: string[],
    private readonly drop: () => Promise<void>,
  ) {}

  static async open(): Promise<SshIssuance> {
    const database = await createTestDatabase();
    const statements: string[] = [];
    const dataSource = new DataSource({
      type: 'postgres',
      url: database.url,
      extra: { max: 25 },
      logging: ['query'],
      logger: recorder(statements),
    });
    await dataSource.initialize();
    return new SshIssuance(dataSource, statements, () => database.drop());
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.drop();
  }

  /**
   * Deletes all users, organizations and certificates. Then creates the organization example.com
   * and its only user, Alice, and signs her in.
   */
  async reset(): Promise<IssuingSession> {
    await this.dataSource.query(
      'TRUNCATE users, organizations, ssh_certificates, audit_events, sessions CASCADE',
    );
    return this.signIn('alice@example.com', await this.newOrganization('example.com'));
  }

  service(...principals: PrincipalKind[]): Promise<CertificateIssuance> {
    return this.serviceWith([], principals);
  }

  /**
   * Returns the code that issues certificates, with a certificate authority. The authority has the
   * given KMS keys first, and then the local key of the tests.
   */
  async serviceWith(
    inKms: readonly Signer[],
    principals: readonly PrincipalKind[] = ['email'],
    principalsDomain?: string,
  ): Promise<CertificateIssuance> {
    const config = {
      ssh: {
        caKmsKeyIds: [],
        caKey: CA_KEY,
        caKeyPath: '',
        principals: new Set(principals),
        principalsDomain,
        requireSecurityKey: false,
      },
      relyingParty: { id: 'svc.example.com', name: 'svc', organizationName: 'svc' },
    };
    const authority = await CertificateAuthority.open(config, this.dataSource, inKms);
    const { manager } = this.dataSource;
    return new CertificateIssuance(config, new Issuance(manager), authority, manager);
  }

  /**
   * Issues a certificate in a session. `kinds` are the configured kinds of principals; by default
   * only the e-mail address.
   */
  async issue(
    session: IssuingSession,
    request: Partial<SshRequestedCertificate> = {},
    kinds: readonly PrincipalKind[] = ['email'],
    principalsDomain?: string,
  ): Promise<IssuedCertificate> {
    const service = await this.serviceWith([], kinds, principalsDomain);
    return service.issue({
      session,
      request: { publicKey: PUBLIC_KEY, ...request },
      origin: ORIGIN,
    });
  }

  async newOrganization(domain: string): Promise<string> {
    const id = randomUUID();
    await this.dataSource.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [
      id,
      domain,
    ]);
    await this.dataSource.query(
      'INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) VALUES ($1, $2, true, now())',
      [id, domain],
    );
    return id;
  }

  /** Inserts a user with a key and a hardware-verified session of eight hours. */
  async signIn(email: string, orgId: string | null): Promise<IssuingSession> {
    const [userId, keyId, sessionId] = [randomUUID(), randomUUID(), randomUUID()];
    await this.dataSource.query('INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)', [
      userId,
      orgId,
      email,
    ]);
    await this.dataSource.query(
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
       VALUES ($1, $2, $3, 'pem', 0, 'packed', true, 'key')`,
      [keyId, userId, randomBytes(16)],
    );
    await this.dataSource.query(
      `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, auth_time, expires_at)
       VALUES ($1, $2, 'verified', $3, $4, now(), now() + interval '8 hours')`,
      [sessionId, randomBytes(32), userId, keyId],
    );
    const denied = { isOfDevice: false, challenge: { scheme: 'Bearer' } } as const;
    return { sessionId, userId, email, denied };
  }

  rows(table: string): Promise<Record<string, unknown>[]> {
    return this.dataSource.query(`SELECT * FROM ${table}`);
  }
}

/** Returns a TypeORM logger that adds the text of every statement to a list. */
function recorder(statements: string[]): Logger {
  return {
    logQuery: (query) => void statements.push(query),
    logQueryError: ignore,
    logQuerySlow: ignore,
    logSchemaBuild: ignore,
    logMigration: ignore,
    log: ignore,
  };
}

function ignore(): void {}
