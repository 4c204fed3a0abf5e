import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFakeIdp, type FakeIdp } from '../support/fake-idp.js';
import { orgApi } from '../support/org-api.js';
import { startReplicatedService, type ReplicatedService } from '../support/replicated-service.js';
import { newAddress } from '../support/client.js';

/** Repeats an action without a pause until `stop` is called. */
class Repeated {
  readonly #failures: string[] = [];
  readonly #stopping = new AbortController();
  #count = 0;
  readonly #running: Promise<void>;

  constructor(private readonly act: () => Promise<void>) {
    this.#running = this.#run();
  }

  /** Resolves after `acts` more runs of the action. */
  async more(acts: number): Promise<void> {
    const goal = this.#count + acts;
    while (this.#count < goal) await delay(5);
  }

  /** Lets the present run of the action end, and returns the failures of all runs. */
  async stop(): Promise<readonly string[]> {
    this.#stopping.abort();
    await this.#running;
    return this.#failures;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.act().catch((error: unknown) => this.#failures.push(String(error)));
      this.#count += 1;
    }
  }
}

describe('the rotation of the client secret at an identity provider that accepts two', () => {
  const accepted = new Set(['old-client-secret']);
  let idp: FakeIdp;
  let service: ReplicatedService;
  beforeAll(async () => {
    idp = await startFakeIdp();
    Object.defineProperty(idp.misbehaviour, 'token', { get: refusal });
    service = await startReplicatedService(knows('old-client-secret'), knows('old-client-secret'));
  });
  afterAll(async () => {
    await service.close();
    await idp.close();
  });

  /**
   * Returns the environment of a replica that presents a client secret to the identity provider.
   */
  const knows = (secret: string) => ({
    SVC_IDP_DEMO_ISSUER: idp.issuer,
    SVC_IDP_DEMO_CLIENT_ID: idp.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: secret,
  });

  /**
   * Returns the provider's refusal of the last token request, or undefined if its client secret is
   * accepted.
   */
  function refusal() {
    const [, encoded = ''] = idp.tokenRequests.at(-1)?.authorization?.split(' ') ?? [];
    const [, secret = ''] = Buffer.from(encoded, 'base64').toString().split(':');
    if (accepted.has(decodeURIComponent(secret))) return undefined;
    return { status: 401, body: { error: 'invalid_client' } };
  }

  async function signIn(): Promise<void> {
    const { url, status } = await service.client().signIn('ada@engine.test');
    if (url.pathname !== '/enroll') throw new Error(`${status} at ${url.pathname}`);
  }

  it('fails no sign-in', async () => {
    const load = new Repeated(signIn);
    await load.more(2);
    accepted.add('new-client-secret');
    for (const index of [0, 1]) {
      await service.replace(index, knows('new-client-secret'));
      await load.more(2);
    }
    accepted.delete('old-client-secret');
    await load.more(4);
    expect(await load.stop()).toEqual([]);
    accepted.clear();
    await expect(signIn()).rejects.toThrow(' at /oauth/callback');
  });
});

describe('the rotation of a SCIM token', () => {
  let service: ReplicatedService;
  beforeAll(async () => {
    service = await startReplicatedService({}, {});
  });
  afterAll(() => service.close());

  it('fails no request of the identity provider, and ends the old token', async () => {
    const admin = service.client();
    await admin.signIn('ada@scim-rotation.example');
    await admin.enroll(service.newKey());
    const create = async () => {
      const answer = await orgApi(admin, 'POST', '/scim-tokens', { description: 'Okta' });
      expect(answer.status).toBe(201);
      return answer.json as { readonly id: string; readonly token: string };
    };
    const listUsers = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const options = { headers, address: newAddress() };
      return (await service.client().get('/scim/v2/Users', options)).status;
    };
    const old = await create();
    let { token } = old;
    const load = new Repeated(async () => {
      const status = await listUsers(token);
      if (status !== 200) throw new Error(`status ${status}`);
    });
    await load.more(5);
    const next = await create();
    await load.more(5);
    ({ token } = next);
    await load.more(5);
    expect((await orgApi(admin, 'DELETE', `/scim-tokens/${old.id}`)).status).toBe(204);
    await load.more(5);
    expect(await load.stop()).toEqual([]);
    expect(await listUsers(old.token)).toBe(401);
  });
});
