import { setTimeout as delay } from 'node:timers/promises';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { newAddress, type Answer, type Client } from '../client.js';
import { fido2Answer } from '../fido2-grant.js';
import { newCodeFields, postForm } from '../oauth-flow.js';
import type { CertificateProof } from './certificate-proof.js';
import type { FailoverService } from './failover-service.js';
import type { Ledger } from './ledger.js';

/** The application at which people sign in. */
export interface SignInApplication {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The parts of a failover test that every person of it uses. */
export interface Surroundings {
  readonly service: FailoverService;
  readonly application: SignInApplication;
  /** The `sshd` at which certificates are tried. */
  readonly proof: CertificateProof;
  /** The list to which every returned certificate is added. */
  readonly ledger: Ledger;
}

/** A way to use one credential of a person. A test tries if the service still accepts it. */
export type Way =
  | 'session'
  | 'key alone: browser'
  | 'key alone: FIDO2 grant'
  | 'token of svc-cli'
  | 'token: userinfo'
  | 'token: introspection'
  | 'certificate';

/** The ways that need only the security key, and no session or token of an earlier login. */
export const BY_KEY_ALONE: readonly Way[] = ['key alone: browser', 'key alone: FIDO2 grant'];

/** A person with a security key, a session, tokens of two clients and an SSH certificate. */
export class Person {
  /** The SCIM id of the person's user, which the identity provider created. */
  scimId = '';
  certificate = '';
  serial = '';
  #cliToken = '';
  #token = '';

  private constructor(
    readonly email: string,
    readonly key: SoftwareKey,
    public browser: Client,
    private readonly around: Surroundings,
  ) {}

  /**
   * Signs the person in for the first time, enrolls a key, and gets a session, tokens and a
   * certificate.
   */
  static async enrolled(email: string, around: Surroundings): Promise<Person> {
    const browser = around.service.client();
    const key = around.service.newKey();
    await browser.signIn(email);
    succeeded(await browser.enroll(key), `the enrollment of ${email}`);
    const person = new Person(email, key, browser, around);
    await person.equip();
    return person;
  }

  /** Gets a new certificate and new tokens, with the session and the key that the person has. */
  async equip(): Promise<void> {
    const { service, application } = this.around;
    const answer = succeeded(await this.requestCertificate(), `the certificate of ${this.email}`);
    this.certificate = answer.json.certificate as string;
    this.serial = answer.json.serial as string;
    const cli = await this.#fido2();
    this.#cliToken = succeeded(cli, 'the FIDO2 grant').json.access_token as string;
    const code = await newCodeFields(this.browser, application.clientId);
    const redeemed = await postForm(service, '/oauth/token', code, basic(application));
    this.#token = succeeded(redeemed, 'the code').json.access_token as string;
  }

  /** Requests an SSH certificate in the person's session. Adds a returned one to the ledger. */
  async requestCertificate(): Promise<Answer> {
    const body = { public_key: this.around.proof.publicKey };
    const answer = await this.browser.post('/v1/credentials/ssh', body, { address: newAddress() });
    if (answer.status === 200) {
      const { serial, certificate } = answer.json as { serial: string; certificate: string };
      this.around.ledger.add({ serial, certificate, email: this.email, at: performance.now() });
    }
    return answer;
  }

  /**
   * Signs in at the identity provider, and logs in with the key. A new client IP address is used,
   * because the rate limit of the old one may be used up.
   */
  async logIn(): Promise<Answer> {
    const browser = this.around.service.client();
    await browser.signIn(this.email);
    const answer = await browser.logIn(this.key);
    if (answer.status === 200) this.browser = browser;
    return answer;
  }

  /**
   * Tries every {@link Way}, and returns those that work. It repeats a request after a status of
   * 429 or 5xx, which does not show if the way works. `sshd` uses the revocation list that was
   * downloaded last.
   */
  async openWays(): Promise<Way[]> {
    const { service, application, proof } = this.around;
    const cli = bearer(this.#cliToken);
    const token = { token: this.#token };
    const ok = async (ask: () => Promise<Answer>) => (await decided(ask)).status === 200;
    const get = (path: string, headers: Record<string, string>) => () =>
      service.client().get(path, { headers });
    const isOpen: Record<Way, () => Promise<boolean>> = {
      session: () => ok(() => this.browser.get('/v1/keys', { address: newAddress() })),
      'key alone: browser': () => ok(() => this.#keyAlone()),
      'key alone: FIDO2 grant': () => ok(() => this.#fido2()),
      'token of svc-cli': () => ok(get('/v1/keys', cli)),
      'token: userinfo': () => ok(get('/oauth/userinfo', bearer(this.#token))),
      'token: introspection': async () => {
        const ask = () => postForm(service, '/oauth/introspect', token, basic(application));
        return (await decided(ask)).json.active === true;
      },
      certificate: () => proof.acceptsAny([this.certificate]),
    };
    const open: Way[] = [];
    for (const [way, check] of Object.entries(isOpen) as [Way, () => Promise<boolean>][])
      if (await check()) open.push(way);
    return open;
  }

  /** Logs in with the key in a browser that has no session. */
  async #keyAlone(): Promise<Answer> {
    const browser = this.around.service.client();
    const started = await browser.post('/login/webauthn/start', {});
    if (started.status !== 200) return started;
    const { state, publicKey } = started.json;
    const credential = this.key.get(publicKey, browser.baseUrl);
    return browser.post('/login/webauthn/complete', { state, credential });
  }

  #fido2(): Promise<Answer> {
    const request = { clientId: 'svc-cli', scope: 'openid svc:credentials' };
    return fido2Answer(this.around.service, this.key, request);
  }
}

/** Returns the `Authorization` header by which an application sends its client secret. */
function basic({ clientId, clientSecret }: SignInApplication): Record<string, string> {
  const pair = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/**
 * Returns the answer if its status is 2xx.
 * @throws Error for any other status
 */
export function succeeded(answer: Answer, what: string): Answer {
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new Error(`${what} was answered ${answer.status}: ${answer.text.slice(0, 300)}`);
}

/**
 * Repeats a request while the response is 429 or 5xx, because these neither accept nor refuse it.
 * Gives up after a minute.
 */
export async function decided(ask: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const answer = await ask();
    const isOpen = answer.status === 429 || answer.status >= 500;
    if (!isOpen) return answer;
    if (performance.now() > deadline)
      throw new Error(`no decision: ${answer.status} ${answer.text.slice(0, 300)}`);
    await delay(20);
  }
}
