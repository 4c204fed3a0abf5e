import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deprovision, type Deprovision } from '../../support/deprovisioning.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { runScript, type ChildScript } from '../../support/child-script.js';
import { Client, newAddress, type Answer } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { CALLBACK, newPkce, parameterOf } from '../../support/oauth-flow.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';
import '../../support/full-scale-only.js';

const WORKERS = 12;
const RESOURCE = 'https://orders.example/api';

/** What the workers received. */
interface Load {
  /**
   * `bases` are the processes that accept the token. Each process is an issuer of its own, and
   * accepts only its own JWTs.
   */
  readonly tokens: { readonly token: string; readonly bases: readonly string[] }[];
  readonly certificates: string[];
  /** The texts of responses that were neither a success nor an expected refusal. */
  readonly faults: string[];
}

describe('an account that ends while 12 workers at two server processes issue access for it', () => {
  let database: TestDatabase;
  let app: TestApp;
  let replicas: ChildScript<ReplicaAnswer>[];
  let bases: string[];
  let service: Deprovision;
  beforeAll(async () => {
    database = await createTestDatabase();
    const { privateKey } = generateKeyPairSync('ed25519');
    const environment = {
      SVC_SSH_CA_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
    app = await startTestApp({ database, environment });
    service = deprovision(app);
    const argument: ReplicaArgument = { database: { url: database.url }, environment };
    replicas = [runScript('replica.ts', argument), runScript('replica.ts', argument)];
    bases = (await Promise.all(replicas.map(({ answer }) => answer))).map(({ baseUrl }) => baseUrl);
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.finish()));
    await app.close();
    await database.drop();
  });

  it.each(['removed', 'deactivated'] as const)(
    '%s: no token is active and no certificate valid after the response, at either process',
    async (ending) => {
      const email = `worker@${ending}.example`;
      const { client } = await app.enrolled(email);
      const cookie = `svc_session=${client.cookie('svc_session')}`;
      const admin = `admin@${ending}-clients.example`;
      await app.enrolled(admin); // the owner of the application is another user, who stays
      const application = await addApplication(
        app,
        {
          redirect_uris: [CALLBACK],
          grant_types: ['authorization_code'],
          response_types: ['code'],
          token_endpoint_auth_method: 'client_secret_post',
          svc_resource_scopes: 'orders:read',
        },
        { owner: admin },
      );
      // Moves the application into the user's organization, so that the requests of the workers
      // need no consent.
      const [user] = await rows<{ id: string }>(
        app.dataSource,
        'SELECT id FROM users WHERE email = $1',
        [email],
      );
      const userId = user?.id ?? '';
      await app.dataSource.query(
        'UPDATE oauth_clients SET org_id = (SELECT org_id FROM users WHERE id = $1) WHERE id = $2',
        [userId, application.clientId],
      );

      const load: Load = { tokens: [], certificates: [], faults: [] };
      const over = new AbortController();
      let attempts = 0;
      const worker = async (index: number) => {
        while (!over.signal.aborted) {
          attempts += 1;
          const base = bases[index % bases.length] ?? '';
          await issue({ base, bases }, cookie, application, load).catch((error: Error) =>
            load.faults.push(error.message),
          );
          if (load.tokens.length === 0 && load.faults.length > 50) break;
        }
      };
      const workers = Array.from({ length: WORKERS }, (_, index) => worker(index));
      while (load.tokens.length < 24 || load.certificates.length < 12) {
        if (load.faults.length > 50) break;
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
      expect(load.faults).toEqual([]);
      const activeOf = async ({ tokens }: Pick<Load, 'tokens'>) => {
        const states = await Promise.all(
          tokens.flatMap(({ token, bases: known }) =>
            known.map((base) => introspect(base, application, token)),
          ),
        );
        expect(states.every(({ status }) => status === 200)).toBe(true);
        return states.filter(({ json }) => json.active === true).length;
      };
      const some = { tokens: load.tokens.slice(0, 10) };
      expect(await activeOf(some)).toBe(some.tokens.flatMap((one) => one.bases).length);
      const options = {
        userId,
        reason: `user ${ending}`,
        revokedBy: 'scim',
        audit: {
          type: 'scim_operation' as const,
          actorId: null,
          origin: { requestId: 'r', ip: undefined, userAgent: undefined },
          details: {},
        },
      };
      await app.dataSource.transaction((tx) =>
        ending === 'removed' ? service.remove(tx, options) : service.deactivate(tx, options),
      );
      // Whatever was issued before the response to the end is invalid now at both processes.
      expect(await activeOf(load)).toBe(0);
      const before = attempts;
      // the workers go on sending
      await expect.poll(() => attempts).toBeGreaterThan(before + 4 * WORKERS);
      over.abort();
      await Promise.all(workers);

      // Responses that arrived after the end have brought only invalid tokens.
      expect(await activeOf(load)).toBe(0);
      expect(load.faults.filter((fault) => /^\w+ 5\d\d /.test(fault))).toEqual([]);
      // Sessions and interactions of the OIDC library may still name a deactivated user. They give
      // no access.
      const notes = ending === 'removed' ? [] : ['Session', 'Interaction'];
      for (const left of [
        'sessions WHERE user_id = $1',
        'oauth_grants WHERE user_id = $1',
        'oauth_artifacts WHERE user_id = $1 AND model <> ALL ($2)',
      ]) {
        const parameters = left.includes('$2') ? [userId, notes] : [userId];
        expect([left, await count(app.dataSource, left, parameters)]).toEqual([left, 0]);
      }
      const valid = 'ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL';
      expect(await count(app.dataSource, valid, [userId])).toBe(0);
    },
  );
});

/**
 * Requests a code, an opaque or a JWT access token for it, and a certificate, and adds them to the
 * load.
 */
async function issue(
  { base, bases }: { readonly base: string; readonly bases: readonly string[] },
  cookie: string,
  application: Application,
  load: Load,
): Promise<void> {
  const browser = new Client(base);
  const { verifier, challenge } = newPkce();
  const isJwt = Math.random() < 0.5;
  const resource: Record<string, string> = isJwt ? { resource: RESOURCE } : {};
  const query = new URLSearchParams({
    client_id: application.clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid orders:read',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...resource,
  });
  const headers = { cookie };
  const sent = await browser.get(`/oauth/authorize?${query.toString()}`, { headers });
  const location = sent.headers.get('location') ?? '';
  if (location.startsWith(CALLBACK)) {
    const redeemed = await postTo(base, '/oauth/token', {
      grant_type: 'authorization_code',
      code: parameterOf(new URL(location), 'code'),
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      client_id: application.clientId,
      client_secret: application.clientSecret,
      ...resource,
    });
    if (redeemed.status === 200) {
      const token = redeemed.json.access_token as string;
      load.tokens.push({ token, bases: isJwt ? [base] : bases });
    } else if (redeemed.json?.error !== 'invalid_grant') {
      load.faults.push(`token ${redeemed.status} ${redeemed.text}`);
    }
  } else if (!location.startsWith('/interaction/')) {
    load.faults.push(`authorize ${sent.status} ${location} ${sent.text.slice(0, 200)}`);
  }
  const certificate = await browser.post(
    '/v1/credentials/ssh',
    { public_key: newPublicKeyLine() },
    { headers: { cookie, origin: base } },
  );
  if (certificate.status === 200) {
    load.certificates.push(certificate.json.serial as string);
  } else if (certificate.status !== 401 && certificate.status !== 403) {
    load.faults.push(`ssh ${certificate.status} ${certificate.text}`);
  }
}

function introspect(
  base: string,
  { clientId, clientSecret }: Application,
  token: string,
): Promise<Answer> {
  return postTo(base, '/oauth/introspect', {
    token,
    client_id: clientId,
    client_secret: clientSecret,
  });
}

function postTo(base: string, path: string, fields: Record<string, string>): Promise<Answer> {
  return new Client(base).send('POST', path, {
    address: newAddress(),
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: '' },
  });
}
