import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from '../app.js';
import { newAddress, type Answer, type Client } from '../client.js';
import { rows } from '../rows.js';
import { newPublicKeyLine } from '../ssh-public-keys.js';

/**
 * The claims that the identity provider states about each person, by the login hint with which the
 * person signs in.
 */
export type Claims = Map<string, object>;

/** The service at which people sign in: one application, or replicas behind one URL. */
export type PeopleHost = Pick<TestApp, 'baseUrl' | 'client' | 'newKey' | 'dataSource'>;

/** A certificate that the service issued to a person. */
export interface Issued {
  readonly serial: string;
  readonly userId: string;
  readonly principals: readonly string[];
}

/**
 * The access that a person has in each way: the principal of the SSH certificate that the person
 * gets, or null for a refusal.
 */
export interface Reach {
  /** By the session of the browser in which the person enrolled. */
  readonly session: string | null;
  /** By the security key alone, in a new browser. */
  readonly key: string | null;
  /**
   * After a new sign-in at the provider, with the person's key. If the account has no key, the
   * person enrolls a new one.
   */
  readonly signIn: string | null;
}

/**
 * Expects two values to be equal. Lint allows `expect` only in test functions, so classes and
 * tables call this function.
 */
export function expectEqual(actual: unknown, expected: unknown, about?: string): void {
  expect(actual, about).toEqual(expected);
}

const PUBLIC_KEY = newPublicKeyLine();

/**
 * A person at the identity provider, with a browser and a security key. The provider knows one
 * subject, and may change its e-mail address.
 */
export class Human {
  readonly #hint: string;
  readonly #own: Set<string>;
  #claim = '';
  readonly issued: Issued[] = [];
  browser: Client | undefined;
  key: SoftwareKey | undefined;

  /**
   * @param claims the map from which the provider takes the claims; without it, the provider states
   * the login hint as e-mail address and subject
   * @param claim the e-mail address that the provider states
   * @param own further e-mail addresses that may be principals of this person
   */
  constructor(
    private readonly app: PeopleHost,
    private readonly claims: Claims | undefined,
    claim: string,
    own: Iterable<string> = [],
  ) {
    this.#hint = claims ? `${randomUUID()}@subjects.example` : claim;
    this.#own = new Set(own);
    this.claimIs(claim);
  }

  /** Returns true if an e-mail address may be a principal of this person. */
  owns(address: string): boolean {
    return this.#own.has(address);
  }

  get email(): string {
    return this.#claim;
  }

  /**
   * The id of the account to which the newest certificate was issued, or a text if there is none.
   */
  get userId(): string {
    return this.issued.at(-1)?.userId ?? 'no account';
  }

  /**
   * Changes the e-mail address that the provider states about the person. The subject stays the
   * same.
   */
  claimIs(email: string): void {
    this.#claim = email;
    this.#own.add(email);
    this.claims?.set(this.#hint, { email, name: 'A Person' });
  }

  /**
   * Creates a person with the same e-mail address and another subject. To the service this is
   * either a stranger, or the same person with a new account at the provider.
   */
  double(): Human {
    return new Human(this.app, this.claims, this.#claim, this.#own);
  }

  /** Signs in at the identity provider, in a new browser. */
  async signIn(): Promise<Answer> {
    this.browser = this.app.client();
    return this.browser.signIn(this.#hint);
  }

  /** Enrolls a key in the browser of the last sign-in. */
  async enroll(): Promise<Answer> {
    const key = this.app.newKey();
    const answer = await enrollIn(this.#known(), key);
    if (answer.status === 200) this.key = key;
    return answer;
  }

  /** Signs in, enrolls a key, and gets a certificate. Each step must succeed. */
  async join(): Promise<void> {
    expectEqual((await this.signIn()).status, 200, `sign-in of ${this.#claim}`);
    await this.enrollWell();
  }

  /** Enrolls a key and gets a certificate. Both must succeed. */
  async enrollWell(): Promise<void> {
    const answer = await this.enroll();
    expectEqual(answer.status, 200, `enrollment of ${this.#claim}: ${answer.text}`);
    expectEqual((await this.certificate()) === null, false, `certificate of ${this.#claim}`);
  }

  /** Requests an SSH certificate in a browser. Returns the principals, or null for a refusal. */
  async certificate(browser = this.browser): Promise<string | null> {
    if (!browser) return null;
    const answer = await browser.post(
      '/v1/credentials/ssh',
      { public_key: PUBLIC_KEY },
      { address: newAddress() },
    );
    if (answer.status !== 200) {
      expectEqual(answer.status === 401 || answer.status === 403, true, answer.text);
      return null;
    }
    const { serial, principals } = answer.json as { serial: string; principals: string[] };
    const [row] = await rows<{ user_id: string }>(
      this.app.dataSource,
      'SELECT user_id FROM ssh_certificates WHERE serial = $1',
      [serial],
    );
    this.issued.push({ serial, principals, userId: row?.user_id ?? '' });
    return principals.join(' ');
  }

  /** Tries to get a certificate in every way of {@link Reach}. */
  async reach(): Promise<Reach> {
    const session = await this.certificate();
    const key = await this.#byKey();
    return { session, key, signIn: await this.bySignIn() };
  }

  #known(): Client {
    if (!this.browser) throw new Error('this person has not signed in');
    return this.browser;
  }

  async #byKey(): Promise<string | null> {
    if (!this.key) return null;
    const browser = this.app.client();
    const { status } = await browser.logIn(this.key);
    return status === 200 ? this.certificate(browser) : null;
  }

  /**
   * Signs in again, and logs in with the person's key. If the account does not have that key,
   * enrolls a new one. Returns the principals of a new certificate, or null for a refusal.
   */
  async bySignIn(): Promise<string | null> {
    const browser = this.app.client();
    if ((await browser.signIn(this.#hint)).status !== 200) return null;
    const known = this.key && (await this.#logIn(browser, this.key));
    if (known) return this.certificate(browser);
    const { status } = await enrollIn(browser, this.app.newKey());
    return status === 200 ? this.certificate(browser) : null;
  }

  async #logIn(browser: Client, key: SoftwareKey): Promise<boolean> {
    const started = await browser.post('/login/webauthn/start', {});
    if (started.status !== 200) return false;
    const { state, publicKey } = started.json;
    const allowed = (publicKey.allowCredentials ?? []) as unknown[];
    if (allowed.length === 0) return false;
    try {
      const credential = key.get(publicKey, this.app.baseUrl);
      const answer = await browser.post('/login/webauthn/complete', { state, credential });
      return answer.status === 200;
    } catch {
      return false; // the account does not have this key
    }
  }
}

/**
 * Enrolls a key in a browser. Returns the response that refused it, or the response of the last
 * step.
 */
async function enrollIn(browser: Client, key: SoftwareKey): Promise<Answer> {
  const started = await browser.post('/enroll/webauthn/start', {}, { address: newAddress() });
  if (started.status !== 200) return started;
  const { state, publicKey } = started.json;
  const credential = key.create(publicKey, browser.baseUrl);
  return browser.post(
    '/enroll/webauthn/complete',
    { state, credential },
    { address: newAddress() },
  );
}
