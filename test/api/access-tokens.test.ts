import { createHash, randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { Controller, Get, Module } from '@nestjs/common';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NewSession } from '../../src/domain/sessions/sessions.repository.js';
import { Sessions } from '../../src/domain/sessions/sessions.service.js';
import { Route } from '../../src/platform/http/routing/route.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { DpopKey, type ProofTampering } from '../support/dpop-key.js';
import { freePort } from '../support/free-port.js';
import { OauthRows, type UserRow, type TokenOptions } from '../support/oauth-rows.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { statementText } from '../support/statement-text.js';
import { makeTlsAuthority } from '../support/tls-authority.js';

/**
 * Routes of this test: two that require the scopes `svc:admin` and `svc:applications`, and two
 * without a scope.
 */
@Controller()
class ProbeController {
  @Get('api/v1/org/probe')
  @Route({ tier: 'general', auth: { session: 'verified', origin: 'own', scope: 'svc:admin' } })
  admin(): string {
    return 'admin';
  }

  @Get('api/v1/applications/probe/probe')
  @Route({
    tier: 'general',
    auth: { session: 'verified', origin: 'own', scope: 'svc:applications' },
  })
  applications(): string {
    return 'applications';
  }

  @Get('v1/probe')
  @Route({ tier: 'general', auth: { session: 'verified', origin: 'own' } })
  unscoped(): string {
    return 'unscoped';
  }

  @Get('v1/probe/optional')
  @Route({ tier: 'general', auth: { session: 'optional', origin: 'own' } })
  optional(): string {
    return 'optional';
  }
}

@Module({ controllers: [ProbeController] })
class ProbeModule {}

const KEYS = '/v1/keys';
const APIS = [KEYS, '/api/v1/applications/probe/probe', '/api/v1/org/probe'];
const EVERY_SCOPE = { scope: 'svc:credentials svc:applications svc:admin' };

describe("'access to the APIs of the service'", () => {
  let app: TestApp;
  let rows: OauthRows;
  let person: UserRow;
  let metadata: string;

  beforeAll(async () => {
    app = await startTestApp({ modules: [ProbeModule] });
    rows = new OauthRows(app.dataSource);
    metadata = `resource_metadata="${app.baseUrl}/.well-known/oauth-protected-resource"`;
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    person = await rows.user({ admin: true });
  });

  const ask = (path: string, headers: Record<string, string>): Promise<Answer> =>
    app.client().get(path, { headers });
  const bearer = (token: string, path = KEYS) => ask(path, { authorization: `Bearer ${token}` });
  const inCookie = (token: string, path = KEYS) => ask(path, { cookie: `svc_session=${token}` });

  /** Sends a GET with a token in the DPoP scheme (RFC 9449 §7.1), and with a proof of the key. */
  async function bound(
    key: DpopKey,
    token: string,
    tampering?: ProofTampering,
    path = KEYS,
  ): Promise<Answer> {
    const proof = await key.proof('GET', app.baseUrl + path, token, tampering);
    return ask(path, { authorization: `DPoP ${token}`, dpop: proof });
  }

  /** Inserts a token of svc-cli that is bound to a key by `jkt` (RFC 9449 §6), and returns it. */
  const boundToken = (key: DpopKey, options: TokenOptions = {}) =>
    rows.token(person, { ...options, payload: { jkt: key.jkt, ...options.payload } });

  /**
   * Returns the scheme and the error of a 401 with one complete challenge: error, description and,
   * for DPoP, the algorithms, then the address of the documentation. Returns the status and the
   * header of any other response.
   */
  function refusal({ status, headers }: Answer): string {
    const challenge = headers.get('www-authenticate') ?? '';
    const [, scheme, error, algs, end] =
      /^(Bearer|DPoP) error="(\w+)", error_description="[^"]+"(, algs="[^"]+")?, (.*)$/.exec(
        challenge,
      ) ?? [];
    const isWhole =
      status === 401 &&
      end === metadata &&
      algs === (scheme === 'DPoP' ? ', algs="ES256 EdDSA Ed25519 PS256"' : undefined);
    return isWhole ? `${scheme} ${error}` : `${status} ${challenge}`;
  }

  describe('the token of a session', () => {
    it.each([KEYS, '/api/v1/applications/probe/probe', '/v1/probe'])(
      'opens %s in the cookie and as Bearer',
      async (path) => {
        const { token } = await rows.session(person);
        expect((await inCookie(token, path)).status).toBe(200);
        expect((await bearer(token, path)).status).toBe(200);
      },
    );

    it('is refused under the DPoP scheme, with a proof and without', async () => {
      const { token } = await rows.session(person);
      expect(refusal(await ask(KEYS, { authorization: `DPoP ${token}` }))).toBe(
        'Bearer invalid_token',
      );
      expect(refusal(await bound(await DpopKey.generate(), token))).toBe('Bearer invalid_token');
    });

    it('opens the organization API only for admins of the organization', async () => {
      const path = '/api/v1/org/probe';
      expect((await inCookie((await rows.session(person)).token, path)).status).toBe(200);
      for (const other of [
        await rows.user(),
        await rows.user({ admin: true, organization: false }),
      ]) {
        const { token } = await rows.session(other);
        for (const answer of [await inCookie(token, path), await bearer(token, path)]) {
          expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
        }
      }
    });

    it.each(['synthetic', 'verified'] as const)(
      'of a %s session of a client opens nothing, since no client received it',
      async (level) => {
        const { token } = await rows.session(person, { level, clientId: 'svc-cli' });
        expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
        expect((await inCookie(token)).status).toBe(401);
      },
    );

    it('opened for svc-cli, or synthetic, belongs to a session whose own token opens nothing', async () => {
      const sessions = app.nest.get(Sessions, { strict: false });
      const proven = { userId: person.id, authTime: new Date(), amr: [], acr: null };
      const news: [NewSession, string | null][] = [
        [{ ...proven, level: 'synthetic' }, null],
        [{ ...proven, level: 'synthetic', clientId: 'svc-cli' }, 'svc-cli'],
        [
          { ...proven, level: 'verified', authenticatorId: person.keyId, clientId: 'svc-cli' },
          'svc-cli',
        ],
      ];
      for (const [session, clientId] of news) {
        const { id, token } = await sessions.open(app.dataSource.manager, session, {
          ip: undefined,
          userAgent: undefined,
        });
        const [row] = await app.dataSource.query<object[]>(
          'SELECT level, client_id, user_id FROM sessions WHERE id = $1',
          [id],
        );
        expect(row).toEqual({ level: session.level, client_id: clientId, user_id: person.id });
        expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
      }
    });

    it('of a synthetic session opens nothing, in the cookie or as Bearer', async () => {
      const { token } = await rows.session(person, { level: 'synthetic' });
      for (const path of [...APIS, '/v1/probe']) {
        expect((await inCookie(token, path)).status).toBe(401);
        expect(refusal(await bearer(token, path))).toBe('Bearer invalid_token');
      }
    });
  });

  describe('an access token of svc-cli', () => {
    it('opens the routes that its scope names', async () => {
      const token = await rows.token(person, { payload: EVERY_SCOPE });
      expect((await bearer(token)).status).toBe(200);
      const ssh = await app
        .client()
        .post(
          '/v1/credentials/ssh',
          { public_key: newPublicKeyLine() },
          { headers: { authorization: `Bearer ${token}`, origin: '' } },
        );
      expect(ssh.status).toBe(200);
    });

    it('opens no other route: 403 insufficient_scope names the missing scope', async () => {
      const token = await rows.token(person);
      expect((await bearer(token)).status).toBe(200);
      const answer = await bearer(token, '/api/v1/applications/probe/probe');
      expect([answer.status, answer.json.code]).toEqual([403, 'insufficient_scope']);
      expect(answer.headers.get('www-authenticate')).toBe(
        'Bearer error="insufficient_scope", error_description="This needs the scope svc:applications.", ' +
          `scope="svc:applications", ${metadata}`,
      );
    });

    it('does not make a user an admin through its scope', async () => {
      const member = await rows.user();
      const key = await DpopKey.generate();
      const payload = { ...EVERY_SCOPE, jkt: key.jkt };
      const token = await rows.token(member, { payload });
      const answer = await bound(key, token, undefined, '/api/v1/org/probe');
      expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
    });

    it.each(APIS.slice(1))('10.1 opens %s only when it is bound to a DPoP key', async (path) => {
      const unbound = await rows.token(person, { payload: EVERY_SCOPE });
      expect(refusal(await bearer(unbound, path))).toBe('DPoP invalid_token');
      const key = await DpopKey.generate();
      const tied = await boundToken(key, { payload: EVERY_SCOPE });
      expect((await bound(key, tied, undefined, path)).status).toBe(200);
    });

    it('opens no route without a scope, not even a public one', async () => {
      const token = await rows.token(person, { payload: EVERY_SCOPE });
      for (const path of ['/v1/probe', '/v1/probe/optional']) {
        expect(refusal(await bearer(token, path))).toBe('Bearer invalid_token');
      }
      const logIn = await app
        .client()
        .post('/login/webauthn/start', {}, { headers: { authorization: `Bearer ${token}` } });
      expect(logIn.status).toBe(401);
    });

    it('is ignored in the cookie: the page is shown as without a session', async () => {
      const token = await rows.token(person, { payload: EVERY_SCOPE });
      for (const path of [...APIS, '/v1/probe']) {
        const answer = await inCookie(token, path);
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
          401,
          `Bearer ${metadata}`,
        ]);
      }
      expect((await inCookie(token, '/v1/probe/optional')).status).toBe(200);
    });

    it('in the cookie cannot end the session of its grant', async () => {
      const token = await rows.token(person);
      const left = await app
        .client()
        .post('/logout', undefined, { headers: { cookie: `svc_session=${token}` } });
      expect(left.status).toBe(303);
      expect((await bearer(token)).status).toBe(200);
    });

    it.each([
      ['expired', { expiresIn: { token: -1 } }],
      ['of an expired grant', { expiresIn: { grant: -1 } }],
      ['of an expired session', { expiresIn: { session: -1 } }],
      ['of a synthetic session', { level: 'synthetic' }],
      ['that was consumed', { consumed: true }],
      ['for a resource server', { payload: { aud: 'https://api.example' } }],
      ['for ourselves by name', { payload: { aud: 'http://localhost' } }],
      ['of another kind: an authorization code', { model: 'AuthorizationCode' }],
      ['of another kind: a device code', { model: 'DeviceCode' }],
      ['of another kind: a registration access token', { model: 'RegistrationAccessToken' }],
    ] satisfies [string, TokenOptions][])('%s is refused', async (_name, options) => {
      const token = await rows.token(person, options);
      expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
      expect((await inCookie(token)).status).toBe(401);
    });

    it('ends at once with the account, the session, the grant and the activity of its owner', async () => {
      const ends = [
        'UPDATE users SET active = false WHERE id = $1',
        'DELETE FROM users WHERE id = $1',
        'DELETE FROM sessions WHERE user_id = $1',
        'DELETE FROM oauth_grants WHERE user_id = $1',
        'DELETE FROM authenticators WHERE user_id = $1',
      ];
      for (const end of ends) {
        const owner = await rows.user();
        const token = await rows.token(owner);
        expect((await bearer(token)).status).toBe(200);
        await app.dataSource.query(end, [owner.id]);
        expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
      }
    });

    it('is invalid on the grant of another client, and a token of another client is invalid on its grant', async () => {
      const clientId = await rows.client();
      const clients: [granted: string, of: string][] = [
        [clientId, 'svc-cli'],
        ['svc-cli', clientId],
      ];
      for (const [granted, of] of clients) {
        const token = await rows.token(person, { clientId: granted, payload: EVERY_SCOPE });
        await app.dataSource.query('UPDATE oauth_artifacts SET client_id = $1 WHERE user_id = $2', [
          of,
          person.id,
        ]);
        expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
      }
    });

    it('opens nothing when its scope or binding cannot be read', async () => {
      const noScope = await bearer(await rows.token(person, { payload: { scope: 7 } }));
      expect([noScope.status, noScope.json.code]).toEqual([403, 'insufficient_scope']);
      const noCertificate = await rows.token(person, { payload: { 'x5t#S256': true } });
      expect(refusal(await bearer(noCertificate))).toBe('Bearer invalid_token');
      expect(refusal(await bearer(await rows.token(person, { payload: { jkt: 7 } })))).toBe(
        'DPoP invalid_token',
      );
    });
  });

  describe('an attack in two steps: a token of a client that registered itself', () => {
    it.each(APIS)('opens %s in no scheme and no cookie, with any scope', async (path) => {
      const clientId = await rows.client();
      // both tokens have the session of the victim, who authorized the client
      const session = await rows.session(person);
      const key = await DpopKey.generate();
      const free = await rows.token(person, { clientId, session, payload: EVERY_SCOPE });
      const tied = await boundToken(key, { clientId, session, payload: EVERY_SCOPE });

      expect(refusal(await bearer(free, path))).toBe('Bearer invalid_token');
      expect(refusal(await ask(path, { authorization: `DPoP ${free}` }))).toBe(
        'Bearer invalid_token',
      );
      expect(refusal(await bound(key, free, undefined, path))).toBe('Bearer invalid_token');
      expect(refusal(await bearer(tied, path))).toBe('DPoP invalid_token');
      expect(refusal(await bound(key, tied, undefined, path))).toBe('DPoP invalid_token');
      for (const token of [free, tied]) {
        expect((await inCookie(token, path)).status).toBe(401);
        const both = { cookie: `svc_session=${session.token}`, authorization: `Bearer ${token}` };
        expect((await ask(path, both)).status).toBe(401);
      }
      expect((await inCookie(session.token, path)).status).toBe(200);
    });

    it('issues no SSH certificate', async () => {
      const clientId = await rows.client();
      const token = await rows.token(person, { clientId, payload: EVERY_SCOPE });
      const answer = await app
        .client()
        .post(
          '/v1/credentials/ssh',
          { public_key: newPublicKeyLine() },
          { headers: { authorization: `Bearer ${token}` } },
        );
      expect(refusal(answer)).toBe('Bearer invalid_token');
    });
  });

  describe('a token that was found before', () => {
    /** Returns the statuses of requests, and the texts of the statements that looked tokens up. */
    async function lookUpsOf(tokens: readonly string[]) {
      const query = vi.spyOn(Client.prototype, 'query');
      try {
        const answers = await Promise.all(tokens.map((token) => bearer(token)));
        const sent = query.mock.calls.map(([statement]) => statementText(statement));
        return {
          statuses: answers.map(({ status }) => status),
          lookUps: sent.filter((one) => one.includes('AS presented')),
        };
      } finally {
        query.mockRestore();
      }
    }
    const OWN = 'token_hash AS presented';
    const ACCESS = 't.id AS presented';

    it.each([
      ['of a session', OWN, ACCESS, () => rows.session(person).then(({ token }) => token)],
      ['of svc-cli', ACCESS, OWN, () => rows.token(person)],
    ])('%s is looked up by the shorter statement', async (_, of, notOf, add) => {
      const tokens = await Promise.all(Array.from({ length: 20 }, add));
      const first = await lookUpsOf(tokens);
      expect(first.lookUps.filter((sent) => sent.includes(of) && sent.includes(notOf))).not.toEqual(
        [],
      );
      const { statuses, lookUps } = await lookUpsOf(tokens);
      expect(statuses).toEqual(tokens.map(() => 200));
      expect(lookUps).not.toEqual([]);
      expect(lookUps.filter((sent) => !sent.includes(of) || sent.includes(notOf))).toEqual([]);
    });

    it('is found beside tokens of the other kind and unknown ones', async () => {
      const { token: own } = await rows.session(person);
      const access = await rows.token(person);
      await lookUpsOf([own, access]);
      const mixed = Array.from({ length: 30 }, (_, n) => [own, access, `x${n}`][n % 3] ?? '');
      const { statuses } = await lookUpsOf(mixed);
      expect(statuses).toEqual(mixed.map((_, n) => (n % 3 === 2 ? 401 : 200)));
    });

    it('opens nothing after its end, alone and beside tokens that live on', async () => {
      const { token: own } = await rows.session(person);
      const access = await rows.token(person);
      const other = await rows.user();
      const { token: ended } = await rows.session(other);
      const endedAccess = await rows.token(other);
      await lookUpsOf([own, ended]);
      await lookUpsOf([access, endedAccess]);
      await app.dataSource.query('UPDATE users SET active = false WHERE id = $1', [other.id]);
      expect((await lookUpsOf([own, ended])).statuses).toEqual([200, 401]);
      expect((await lookUpsOf([endedAccess, access])).statuses).toEqual([401, 200]);
      expect((await lookUpsOf([ended])).statuses).toEqual([401]);
    });
  });

  it('an unknown token is refused in the scheme that it uses, even if it is a JWT', async () => {
    for (const token of ['unknown', 'e30.e30.e30', `jwt.${randomUUID()}`]) {
      expect(refusal(await bearer(token))).toBe('Bearer invalid_token');
      expect(refusal(await ask(KEYS, { authorization: `DPoP ${token}` }))).toBe(
        'DPoP invalid_token',
      );
    }
  });

  describe('a token that is bound to a DPoP key', () => {
    it.each(['ES256', 'EdDSA', 'Ed25519', 'PS256'])(
      'is accepted with a proof by %s',
      async (alg) => {
        const key = await DpopKey.generate(alg);
        const answer = await bound(key, await boundToken(key));
        expect(answer.status).toBe(200);
      },
    );

    it('accepts the address without its query in the proof of a request with a query', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const address = '/v1/account/credentials';
      const path = `${address}?limit=2`;
      // a proof may have the query in its `htu`, which the service ignores (RFC 9449 §4.3)
      expect((await bound(key, token, undefined, path)).status).toBe(200);
      const proof = await key.proof('GET', app.baseUrl + address, token);
      const answer = await ask(path, { authorization: `DPoP ${token}`, dpop: proof });
      expect(answer.status).toBe(200);
    });

    it('is refused as Bearer, with a valid proof and without', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const proof = await key.proof('GET', app.baseUrl + KEYS, token);
      expect(refusal(await bearer(token))).toBe('DPoP invalid_token');
      expect(refusal(await ask(KEYS, { authorization: `Bearer ${token}`, dpop: proof }))).toBe(
        'DPoP invalid_token',
      );
      expect((await inCookie(token)).status).toBe(401);
      const shown = await ask(KEYS, { cookie: `svc_session=${token}`, dpop: proof });
      expect(shown.status).toBe(401);
    });

    it.each([
      ['another method', { claims: { htm: 'POST' } }],
      ['another path', { claims: { htu: 'http://localhost/v1/other' } }],
      ['no address', { claims: { htu: undefined } }],
      ['another token', { claims: { ath: 'AAAA' } }],
      ['no token', { claims: { ath: undefined } }],
      ['no moment', { claims: { iat: undefined } }],
      ['no id', { claims: { jti: undefined } }],
      ['another type', { header: { typ: 'JWT' } }],
    ] satisfies [string, object][])('is refused with a proof of %s', async (_name, tampering) => {
      const key = await DpopKey.generate();
      const answer = await bound(key, await boundToken(key), tampering);
      expect(refusal(answer)).toBe('DPoP invalid_dpop_proof');
      expect(answer.json.code).toBe('invalid_dpop_proof');
    });

    it.each([
      ['ago', -301],
      ['ahead', 330],
    ])('is refused with a proof whose time is too far %s', async (_way, seconds) => {
      const key = await DpopKey.generate();
      // relative to the time of this request: the table above was made when the file was loaded
      const iat = Math.floor(Date.now() / 1000) + seconds;
      const answer = await bound(key, await boundToken(key), { claims: { iat } });
      expect(refusal(answer)).toBe('DPoP invalid_dpop_proof');
      expect(answer.json.code).toBe('invalid_dpop_proof');
    });

    it('is refused with the proof of another key, no proof, two proofs and a malformed proof', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const authorization = `DPoP ${token}`;
      const stranger = await DpopKey.generate();
      const proof = await key.proof('GET', app.baseUrl + KEYS, token);
      const another = await key.proof('GET', app.baseUrl + KEYS, token);
      for (const answer of [
        await bound(stranger, token),
        // signed by `stranger`, but names `key` in its header
        await bound(stranger, token, { header: { jwk: key.jwk } }),
        await ask(KEYS, { authorization }),
        await ask(KEYS, { authorization, dpop: `${proof}, ${another}` }),
        await ask(KEYS, { authorization, dpop: 'a.b.c' }),
      ]) {
        expect(refusal(answer)).toBe('DPoP invalid_dpop_proof');
      }
      const twice = await rawExchange(
        app.baseUrl,
        requestBytes(app.baseUrl, `GET ${KEYS}`, [
          `Host: ${new URL(app.baseUrl).host}`,
          `Authorization: ${authorization}`,
          `DPoP: ${proof}`,
          `DPoP: ${another}`,
        ]),
      );
      expect(twice.status).toBe(401);
    });

    it('a proof for the address of a poisoned Host header is refused', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const address = `http://evil.example${KEYS}`;
      const dpop = await key.proof('GET', address, token);
      const poison = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' };
      const answer = await ask(KEYS, { authorization: `DPoP ${token}`, dpop, ...poison });
      expect(refusal(answer)).toBe('DPoP invalid_dpop_proof');
    });

    it('an invalid token spends no proof, and the error names the token', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const jti = randomUUID();
      const elsewhere = await bound(
        key,
        token,
        { claims: { jti } },
        '/api/v1/applications/probe/probe',
      );
      expect([elsewhere.status, elsewhere.json.code]).toEqual([403, 'insufficient_scope']);
      expect(elsewhere.headers.get('www-authenticate')).toMatch(/^DPoP error="insufficient_scope"/);
      expect((await bound(key, token, { claims: { jti } })).status).toBe(200);

      const expired = await boundToken(key, { expiresIn: { token: -1 } });
      expect(refusal(await bound(key, expired, { claims: { htm: 'POST' } }))).toBe(
        'DPoP invalid_token',
      );
    });

    it('20 requests with one proof: exactly one succeeds', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const proof = await key.proof('GET', app.baseUrl + KEYS, token);
      const headers = { authorization: `DPoP ${token}`, dpop: proof };
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(KEYS, headers)));
      const refused = answers.filter(({ status }) => status !== 200);
      expect(refused).toHaveLength(19);
      for (const answer of refused) expect(refusal(answer)).toBe('DPoP invalid_dpop_proof');
    });

    it('a proof from 290 s ahead is kept until it is too old to be accepted', async () => {
      const key = await DpopKey.generate();
      const token = await boundToken(key);
      const jti = randomUUID();
      const iat = Math.floor(Date.now() / 1000) + 290;
      expect((await bound(key, token, { claims: { jti, iat } })).status).toBe(200);
      const id = createHash('sha256')
        .update(JSON.stringify([`dpop ${key.jkt}`, jti]))
        .digest();
      const [kept] = await app.dataSource.query<{ until: number }[]>(
        'SELECT extract(epoch FROM expires_at)::int AS until FROM oauth_replays WHERE key = $1',
        [id],
      );
      expect(kept?.until).toBe(iat + 600);
    });
  });
});

describe('a token that is bound to a client certificate', () => {
  const own = makeTlsAuthority('authority of servers');
  const client = makeTlsAuthority('authority of clients');
  const stranger = makeTlsAuthority('authority of strangers');
  const x5t = createHash('sha256').update(new X509Certificate(client.cert).raw).digest('base64url');
  let app: TestApp;
  let ports: { https: number; http: number };
  let mtlsPort: number;
  let rows: OauthRows;
  let person: UserRow;

  beforeAll(async () => {
    ports = { https: await freePort(), http: await freePort() };
    mtlsPort = await freePort();
    app = await startTestApp({
      ports,
      environment: {
        SVC_BASE_URL: `https://localhost:${ports.https}`,
        SVC_TLS_CERT: own.cert,
        SVC_TLS_KEY: own.key,
        SVC_MTLS_PORT: String(mtlsPort),
      },
    });
    rows = new OauthRows(app.dataSource);
    person = await rows.user();
  });
  afterAll(() => app.close());

  /**
   * Sends `GET /v1/keys` to a TLS port, with a client certificate or without. Returns the HTTP
   * status.
   */
  async function ask(
    port: number,
    headers: Record<string, string>,
    certificate?: { readonly cert: string; readonly key: string },
  ): Promise<number | undefined> {
    const sent = request({
      port,
      path: KEYS,
      host: 'localhost',
      ca: own.ca,
      agent: false,
      ...(certificate ? { cert: certificate.cert, key: certificate.key } : {}),
      headers: { 'x-forwarded-for': newAddress(), ...headers },
    }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    await text(answer);
    return answer.statusCode;
  }

  it('is accepted only from a connection with that certificate', async () => {
    const token = await rows.token(person, { payload: { 'x5t#S256': x5t } });
    const authorization = `Bearer ${token}`;
    expect(await ask(mtlsPort, { authorization }, client)).toBe(200);
    expect(await ask(mtlsPort, { authorization }, stranger)).toBe(401);
    expect(await ask(mtlsPort, { authorization })).toBe(401);
    // the server requests no client certificate on this port, so that the client sends none
    expect(await ask(ports.https, { authorization }, client)).toBe(401);
    expect(await ask(mtlsPort, { cookie: `svc_session=${token}` }, client)).toBe(401);
  });

  it('cannot be used with a certificate in a header', async () => {
    const authorization = `Bearer ${await rows.token(person, { payload: { 'x5t#S256': x5t } })}`;
    const pem = encodeURIComponent(client.cert);
    const der = new X509Certificate(client.cert).raw.toString('base64');
    for (const port of [mtlsPort, ports.https]) {
      const headers = {
        'x-ssl-client-cert': pem,
        'x-forwarded-client-cert': `Cert="${pem}"`,
        'client-cert': `:${der}:`,
      };
      expect(await ask(port, { authorization, ...headers })).toBe(401);
    }
  });

  it('needs both when it is bound to a DPoP key too', async () => {
    const key = await DpopKey.generate();
    const token = await rows.token(person, { payload: { 'x5t#S256': x5t, jkt: key.jkt } });
    const proven = async (port: number) => ({
      authorization: `DPoP ${token}`,
      dpop: await key.proof('GET', `https://localhost:${port}${KEYS}`, token),
    });
    expect(await ask(mtlsPort, await proven(mtlsPort), client)).toBe(200);
    expect(await ask(mtlsPort, await proven(ports.https), client)).toBe(200);
    expect(await ask(mtlsPort, await proven(mtlsPort), stranger)).toBe(401);
    expect(await ask(mtlsPort, await proven(ports.http), client)).toBe(401);
    expect(await ask(mtlsPort, { authorization: `Bearer ${token}` }, client)).toBe(401);
  });
});
