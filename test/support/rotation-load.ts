import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { publicKeyBlob, publicKeyLine } from '@svc/openssh';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from './app.js';
import { addApplication, type Application } from './applications.js';
import { newAddress, type Answer, type Client } from './client.js';
import { authorize, CALLBACK, newDpopKey, newPkce, parameterOf, postForm } from './oauth-flow.js';
import { verifyCertificate, verifyJwt } from './published-keys.js';
import type { ReplicatedService } from './replicated-service.js';

/** The kinds of requests that the load counts. Most of them get a credential. */
export type LoadKind = 'login' | 'ssh' | 'aws' | 'id_token' | 'jwt' | 'introspection' | 'device';

/**
 * The load during a rotation of keys: users who log in and request every kind of credential all the
 * time.
 */
export interface RotationLoad {
  /**
   * A text about each request that failed, and about each credential that did not verify. If the
   * service is correct, there is none.
   */
  readonly failures: string[];
  /** The number of successful requests of each kind. */
  readonly done: Readonly<Record<LoadKind, number>>;
  /**
   * Resolves when each user has completed `count` more rounds of requests. A round has every kind
   * of request. Also resolves after more than 20 failures.
   */
  rounds(count: number): Promise<void>;
  /**
   * Ends the current rounds. Verifies again all credentials that were issued since the last pause,
   * or since the start.
   */
  pause(): Promise<void>;
  resume(): void;
  /** Does the same as {@link pause}, at the end of the test. */
  stop(): Promise<void>;
}

const RESOURCE = 'https://orders.example';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/**
 * Enrolls users, and lets them send requests. Each credential is verified when it arrives, by the
 * keys that are published at that time.
 */
export async function startRotationLoad(
  service: ReplicatedService,
  users = 2,
): Promise<RotationLoad> {
  const load = new Load(service);
  await load.enroll(users);
  load.resume();
  return load;
}

class Load implements RotationLoad {
  readonly failures: string[] = [];
  readonly done = { login: 0, ssh: 0, aws: 0, id_token: 0, jwt: 0, introspection: 0, device: 0 };
  readonly #users: User[] = [];
  #running: Promise<unknown> = Promise.resolve();
  #isPaused = true;

  constructor(private readonly service: ReplicatedService) {}

  async enroll(users: number): Promise<void> {
    // These functions need only members of a TestApp that the replicated service has too.
    const origin = this.service as unknown as TestApp;
    for (let number = 0; number < users; number += 1) {
      const email = `user${number}@rotation.example`;
      const key = this.service.newKey();
      const browser = this.service.client();
      await browser.signIn(email);
      expectStatus(await browser.enroll(key), 200);
      const application = await addApplication(
        this.service.app,
        {
          client_name: 'orders',
          token_endpoint_auth_method: 'client_secret_post',
          redirect_uris: [CALLBACK],
          response_types: ['code'],
          grant_types: ['authorization_code'],
          svc_resource_scopes: 'orders:read',
        },
        { owner: email },
      );
      this.#users.push(new User(this.service, origin, { email, key, application }, this.done));
    }
  }

  resume(): void {
    this.#isPaused = false;
    this.#running = Promise.all(this.#users.map((user) => this.#work(user)));
  }

  async rounds(count: number): Promise<void> {
    const goals = this.#users.map((user) => user.rounds + count);
    while (this.#users.some((user, at) => user.rounds < (goals[at] ?? 0))) {
      if (this.failures.length > 20) return; // the caller checks `failures`
      await delay(10);
    }
  }

  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.#running;
    for (const user of this.#users) {
      await this.#noting(user.name, () => user.verifyAll());
      user.forget();
    }
  }

  stop(): Promise<void> {
    return this.pause();
  }

  async #work(user: User): Promise<void> {
    while (!this.#isPaused) {
      await this.#noting(user.name, () => user.round());
      user.rounds += 1;
    }
  }

  async #noting(name: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** A user with one security key and one application. */
class User {
  rounds = 0;
  readonly name: string;
  readonly #jwts: string[] = [];
  readonly #certificates: string[] = [];
  readonly #accessTokens: string[] = [];
  readonly #publicKey: string;
  /** The newest nonce that the service sent for DPoP proofs. */
  #nonce: string | undefined;

  constructor(
    private readonly service: ReplicatedService,
    private readonly origin: TestApp,
    private readonly account: {
      readonly email: string;
      readonly key: SoftwareKey;
      readonly application: Application;
    },
    private readonly done: Record<LoadKind, number>,
  ) {
    this.name = account.email;
    this.#publicKey = publicKeyLine(
      publicKeyBlob(generateKeyPairSync('ed25519').privateKey),
      account.email,
    );
  }

  /** Logs in, and gets one credential of each kind. */
  async round(): Promise<void> {
    const device = await this.#post('/oauth/device', { client_id: 'svc-cli' }, 200);
    const browser = await this.#logIn();
    await this.#requestSsh(browser);
    await this.#requestAws(browser);
    await this.#requestIdToken(browser);
    await this.#requestJwt(browser);
    await this.#approve(browser, device);
  }

  /**
   * Verifies all credentials since the last {@link forget} again, because the keys that signed them
   * must stay published. Introspects the access tokens too.
   */
  async verifyAll(): Promise<void> {
    for (const jwt of this.#jwts) await verifyJwt(this.service, jwt);
    for (const certificate of this.#certificates)
      await verifyCertificate(this.service, certificate);
    for (const token of this.#accessTokens) await this.#introspect(token);
  }

  forget(): void {
    for (const issued of [this.#jwts, this.#certificates, this.#accessTokens]) issued.length = 0;
  }

  async #logIn(): Promise<Client> {
    const browser = this.service.client();
    const signedIn = await browser.signIn(this.account.email);
    if (signedIn.url.pathname !== '/login') throw new Error(`sign-in led to ${signedIn.url.href}`);
    expectStatus(await browser.logIn(this.account.key), 200);
    this.done.login += 1;
    return browser;
  }

  async #requestSsh(browser: Client): Promise<void> {
    const body = { public_key: this.#publicKey };
    const answer = await browser.post('/v1/credentials/ssh', body, { address: newAddress() });
    expectStatus(answer, 200);
    const certificate = answer.json.certificate as string;
    await verifyCertificate(this.service, certificate);
    this.#certificates.push(certificate);
    this.done.ssh += 1;
  }

  async #requestAws(browser: Client): Promise<void> {
    const answer = await browser.post('/v1/credentials/aws/token', {}, { address: newAddress() });
    expectStatus(answer, 200);
    await this.#keepJwt(answer.json.id_token as string);
    this.done.aws += 1;
  }

  async #requestIdToken(browser: Client): Promise<void> {
    const { id_token: idToken } = await this.#redeem(browser, { scope: 'openid email' });
    await this.#keepJwt(String(idToken));
    this.done.id_token += 1;
  }

  /** Requests a JWT access token, and introspects both it and an earlier one. */
  async #requestJwt(browser: Client): Promise<void> {
    const asked = { scope: 'orders:read', resource: RESOURCE };
    const { access_token: token } = await this.#redeem(browser, asked);
    await this.#keepJwt(String(token));
    this.done.jwt += 1;
    this.#accessTokens.push(String(token));
    const [earlier = ''] = this.#accessTokens;
    for (const one of [String(token), earlier]) await this.#introspect(one);
  }

  async #redeem(
    browser: Client,
    asked: Readonly<Record<string, string>>,
  ): Promise<Record<string, unknown>> {
    const { verifier, challenge } = newPkce();
    const { clientId, clientSecret } = this.account.application;
    const url = await authorize(browser, {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...asked,
    });
    const { resource } = asked;
    const fields = {
      grant_type: 'authorization_code',
      code: parameterOf(url, 'code'),
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      client_id: clientId,
      client_secret: clientSecret,
      ...(resource === undefined ? {} : { resource }),
    };
    return (await this.#post('/oauth/token', fields, 200)).json as Record<string, unknown>;
  }

  async #introspect(token: string): Promise<void> {
    const { clientId, clientSecret } = this.account.application;
    const fields = { token, client_id: clientId, client_secret: clientSecret };
    const { json } = await this.#post('/oauth/introspect', fields, 200);
    if (json.active !== true) throw new Error('introspection calls an access token inactive');
    this.done.introspection += 1;
  }

  /**
   * Approves the device code that was requested before the login. Gets the device's token with a
   * DPoP proof, which has the nonce of the last response.
   */
  async #approve(browser: Client, device: Answer): Promise<void> {
    const { user_code: userCode, device_code: deviceCode } = device.json as Record<string, string>;
    const address = newAddress();
    expectStatus(await browser.get(`/device?user_code=${userCode}`, { address }), 200);
    expectStatus(await browser.post('/device/approve', { user_code: userCode }, { address }), 200);
    const dpop = await newDpopKey();
    const claims = this.#nonce === undefined ? {} : { nonce: this.#nonce };
    const answer = await this.#post(
      '/oauth/token',
      { grant_type: DEVICE_GRANT, client_id: 'svc-cli', device_code: deviceCode ?? '' },
      200,
      { dpop: await dpop.proof('POST', `${this.service.baseUrl}/oauth/token`, claims) },
    );
    this.#nonce = answer.headers.get('dpop-nonce') ?? this.#nonce;
    this.done.device += 1;
  }

  async #post(
    path: string,
    fields: Readonly<Record<string, string>>,
    status: number,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const answer = await postForm(this.origin, path, fields, headers);
    expectStatus(answer, status);
    return answer;
  }

  async #keepJwt(jwt: string): Promise<void> {
    await verifyJwt(this.service, jwt);
    this.#jwts.push(jwt);
  }
}

function expectStatus(answer: Answer, status: number): void {
  if (answer.status === status) return;
  throw new Error(`status ${answer.status} in place of ${status}: ${answer.text.slice(0, 300)}`);
}
