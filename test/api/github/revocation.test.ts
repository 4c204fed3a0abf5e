import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import type { Config } from '#platform/config/config.js';
import { loadConfig } from '#platform/config/load-config.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { withRootSecret } from '#platform/kms/root-secret.js';
import { sealSecret } from '#platform/crypto/sealed-secret.js';
import { GitHubApp } from '#domain/github/app/github-app.service.js';
import { queueUndelivered } from '#domain/github/tokens/github-tokens.repository.js';
import { SEALED_TOKEN } from '#domain/github/tokens/token-queue.repository.js';
import { TokenRevoker } from '#domain/github/tokens/token-revoker.service.js';
import { GitHubStandIn } from '@svc/stand-ins/github';
import type { StandInToken } from '@svc/stand-ins/github-state';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress } from '../../support/client.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { count, rows } from '../../support/rows.js';
import { TestClock } from '../../support/test-clock.js';

const DELETE_TOKEN = 'DELETE /api/v3/installation/token';

/** The ways in which a session or its user loses access, each by a request to the service. */
const ENDS: Record<
  string,
  (running: GitHubApplication, user: EnrolledUser & { readonly id: string }) => Promise<unknown>
> = {
  'SCIM deletes the user': ({ organization }, { id }) =>
    organization.scim('DELETE', `/Users/${id}`),
  'SCIM deactivates the user': ({ organization }, { id }) =>
    organization.scim('PATCH', `/Users/${id}`, {
      Operations: [{ op: 'replace', path: 'active', value: false }],
    }),
  'SCIM changes the address of the user': ({ organization }, { id }) =>
    organization.scim('PATCH', `/Users/${id}`, {
      Operations: [{ op: 'replace', path: 'userName', value: `new-${id}@octo.example` }],
    }),
  'an admin removes the user': ({ organization }, { id }) =>
    organization.admin.client.post(`/api/v1/org/members/${id}/remove`, undefined, {
      address: newAddress(),
    }),
  'an admin revokes the credentials of the user': ({ organization }, { id }) =>
    organization.admin.client.post(`/api/v1/org/members/${id}/revoke-credentials`, undefined, {
      address: newAddress(),
    }),
  'the user logs out': (_, { client }) => client.post('/logout', {}),
  'an admin unlinks the installation': ({ organization, installation }) =>
    organization.admin.client.send(
      'DELETE',
      `/v1/credentials/github/installations/${installation.id}`,
    ),
};

describe('the tokens of a user whose access ends', () => {
  let running: GitHubApplication;
  beforeAll(async () => {
    running = await startGitHubApplication();
  });
  afterAll(() => running.close());

  const newest = () => running.github.state.tokens.at(-1) as StandInToken;

  it.each(Object.keys(ENDS))('are revoked at GitHub when %s', async (how) => {
    const { app } = running;
    const user = await running.member(`${randomUUID()}@octo.example`);
    expect((await askToken(user.client)).status).toBe(200);
    const token = newest();
    const answer = (await ENDS[how]?.(running, user)) as { readonly status: number };
    expect(answer.status).toBeLessThan(400);
    await expect.poll(() => token.revoked, { timeout: 90_000 }).toBe(true);
    await expect
      .poll(() =>
        rows(
          app.dataSource,
          "SELECT details->>'outcome' AS outcome FROM audit_events WHERE type = 'github_token_revoked' AND subject_id = $1",
          [user.id],
        ),
      )
      .toEqual([{ outcome: 'revoked' }]);
    expect(await count(app.dataSource, 'github_tokens WHERE user_id = $1', [user.id])).toBe(0);
  });
});

describe('a user who ends while GitHub mints the token', () => {
  it('gets no token, and GitHub has revoked it', async () => {
    const running = await startGitHubApplication();
    const { github, organization } = running;
    const user = await running.member('late@octo.example');
    const { promise, resolve } = Promise.withResolvers<void>();
    github.state.parked = promise;
    const before = github.state.tokens.length;
    const asked = askToken(user.client);
    await expect.poll(() => github.state.tokens.length).toBe(before + 1);
    expect((await organization.scim('DELETE', `/Users/${user.id}`)).status).toBe(204);
    resolve();
    const answer = await asked;
    expect([answer.status, answer.json.code]).toEqual([401, 'unauthenticated']);
    expect(answer.text).not.toContain('ghs_');
    await expect.poll(() => github.state.tokens.at(-1)?.revoked).toBe(true);
    await running.close();
  });
});

describe('the queue of revocations', () => {
  let app: TestApp; // it has no GitHub App, so that it runs no worker for revocations
  let github: GitHubStandIn;
  let config: Config;
  let clock: TestClock;
  beforeAll(async () => {
    app = await startTestApp();
    github = await GitHubStandIn.start();
    config = await configOf();
  });
  beforeEach(async () => {
    clock = new TestClock(Date.now());
    github.state.requests.length = 0;
    github.state.tokens.length = 0;
    github.state.fault = 'none';
    await app.dataSource.query('DELETE FROM github_tokens');
  });
  afterAll(async () => {
    await app.close();
    await github.close();
  });

  const configOf = async (more: object = {}) => {
    const { config: loaded } = loadConfig({
      SVC_JWT_SECRET: 'a root secret of the tests, 1234567890',
      SVC_IDPS: 'demo',
      SVC_IDP_DEMO_TYPE: 'oidc',
      SVC_IDP_DEMO_ISSUER: 'http://localhost:1',
      SVC_IDP_DEMO_CLIENT_ID: 'x',
      SVC_IDP_DEMO_CLIENT_SECRET: 'x',
      ...github.environment,
      ...more,
    });
    return withRootSecret(loaded, await KmsKeys.open(loaded));
  };
  const replica = (settings = config, at: Clock = clock, seconds?: number) =>
    new TokenRevoker(
      settings,
      app.dataSource,
      new GitHubApp(settings, at, seconds),
      at,
      systemRandom,
    );
  /** Mints tokens at the GitHub stand-in, and queues their revocation. */
  const queue = async (number: number): Promise<void> => {
    const installation = github.state.install(`queue-${github.state.newId()}`);
    const edge = new GitHubApp(config, clock);
    for (let n = 0; n < number; n += 1) {
      const minted = await edge.mint({
        installationId: installation.id,
        repositories: undefined,
        permissions: { contents: 'read' },
      });
      await queueUndelivered(app.dataSource.manager, {
        ...minted,
        id: randomUUID(),
        userId: randomUUID(),
        orgId: randomUUID(),
        sessionId: randomUUID(),
        installationId: installation.id,
        owner: installation.account.login,
        sealed: await sealSecret(config.secrets, SEALED_TOKEN, minted.token),
      });
    }
    github.state.requests.length = 0;
  };
  const revoked = () => github.state.tokens.filter((token) => token.revoked).length;
  const requests = () => github.state.requests.filter((one) => one === DELETE_TOKEN).length;
  const left = () => count(app.dataSource, 'github_tokens');

  it('lasts while GitHub is away for a minute: the tries become rarer, and then it is revoked', async () => {
    await queue(1);
    const worker = replica();
    await github.away();
    let tries = 0;
    for (let second = 0; second < 60; second += 1) {
      tries += await worker.drain();
      clock.advance(1000);
    }
    expect(tries).toBeGreaterThan(4);
    expect(tries).toBeLessThan(12);
    expect(await left()).toBe(1);
    await github.back();
    clock.advance(60_000);
    await worker.drain();
    expect([revoked(), await left()]).toEqual([1, 0]);
  });

  it('is sent once by four replicas', async () => {
    await queue(24);
    const replicas = Array.from({ length: 4 }, () => replica());
    await Promise.all(replicas.map((one) => one.drain()));
    expect([requests(), revoked(), await left()]).toEqual([24, 24, 0]);
  });

  it('is taken over when a replica dies between its lease and the answer', async () => {
    await queue(1);
    github.state.fault = 'hanging';
    const dying = replica(config, clock, 0.2);
    const over = dying.drain();
    await expect.poll(requests).toBe(1);
    expect(await replica().drain()).toBe(0); // the lease of the first replica has not expired
    github.state.fault = 'none';
    clock.advance(31_000);
    await replica().drain();
    expect([revoked(), await left()]).toEqual([1, 0]);
    await over; // the request of the first replica fails late, and changes nothing
    expect(await left()).toBe(0);
  });

  it.each(['rate-limited', 'secondary-limit', 'bad-gateway', 'hanging'] as const)(
    'stays when GitHub is %s, and waits as long as GitHub asks for',
    async (fault) => {
      await queue(1);
      github.state.fault = fault;
      const worker = replica(config, clock, 0.05);
      expect(await worker.drain()).toBe(1);
      github.state.fault = 'none';
      const wait = { 'rate-limited': 1_190_000, 'secondary-limit': 59_000 }[fault as string] ?? 400;
      clock.advance(wait);
      expect(await worker.drain()).toBe(0);
      clock.advance(20_000);
      expect(await worker.drain()).toBe(1);
      expect([revoked(), await left()]).toEqual([1, 0]);
    },
  );

  it('ends with an audit event that says so when a token expired first', async () => {
    await queue(1);
    const worker = replica();
    await github.away();
    await worker.drain();
    clock.advance(3_700_000);
    await worker.drain();
    await github.back();
    expect(await left()).toBe(0);
    const [event] = await rows(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'github_revocation_failed' ORDER BY created_at DESC LIMIT 1",
    );
    expect(event).toMatchObject({ details: { outcome: 'expired', reason: 'not delivered' } });
  });

  it('counts a token that GitHub does not know any more as revoked', async () => {
    await queue(1);
    github.state.tokens.length = 0;
    await replica().drain();
    expect(await left()).toBe(0);
  });

  it('opens under the previous root secret, and a start seals it again under the new one', async () => {
    await queue(1);
    const old = config.secrets.root;
    const secret = { SVC_JWT_SECRET: 'another root secret, 0987654321 abc' };
    const rotated = await configOf({ ...secret, SVC_JWT_SECRET_PREVIOUS: old });
    await replica(rotated).resealAll();
    await replica(await configOf(secret)).drain();
    expect([revoked(), await left()]).toEqual([1, 0]);
  });

  it('is sealed again within five minutes where a replica of before sealed it after that start', async () => {
    await queue(1);
    const sealed = async () =>
      (await rows<{ sealed: string }>(app.dataSource, 'SELECT sealed FROM github_tokens'))[0]
        ?.sealed;
    const before = await sealed();
    const old = config.secrets.root;
    const secret = { SVC_JWT_SECRET: 'another root secret, 0987654321 abc' };
    const worker = replica(await configOf({ ...secret, SVC_JWT_SECRET_PREVIOUS: old }));
    github.state.fault = 'bad-gateway';
    worker.onApplicationBootstrap();
    await expect.poll(sealed).not.toBe(before);
    await app.dataSource.query('UPDATE github_tokens SET sealed = $1', [before]);
    clock.advance(299_000);
    await expect.poll(requests).toBeGreaterThan(0);
    expect(await sealed()).toBe(before);
    await expect
      .poll(() => {
        clock.advance(2_000);
        return sealed();
      })
      .not.toBe(before);
    await worker.stopWork();
  });
});
