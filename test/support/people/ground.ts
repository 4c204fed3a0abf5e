import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { startTestApp, type TestApp, type TestAppOptions } from '../app.js';
import type { Answer } from '../client.js';
import { orgApi } from '../org-api.js';
import { rows } from '../rows.js';
import { patchOf } from '../scim-requests.js';
import { expectEqual, Human, type Claims, type PeopleHost, type Reach } from './human.js';

export type Mode = 'open' | 'scim_only';

/**
 * A person, and the expected access of the person at the end of a row of a test table. The access
 * is the principal of the SSH certificate that the person gets, or null for a refusal. One value
 * stands for all ways of getting a certificate.
 */
export type End = readonly [human: Human, reach: string | null | Reach];

/**
 * The running service for tests that choose what the identity provider states about each person.
 */
export interface PeopleService {
  readonly app: TestApp;
  /**
   * Creates an organization. When its SCIM client sends the first request, its membership setting
   * becomes `mode`, such as `scim_only`.
   */
  found(mode: Mode): Promise<Ground>;
  close(): Promise<void>;
}

/**
 * Starts the service with an identity provider that states the claims each {@link Human} has set.
 */
export async function startPeopleService(
  options: Pick<TestAppOptions, 'database' | 'environment'> = {},
): Promise<PeopleService> {
  const claims: Claims = new Map();
  const app = await startTestApp({ ...options, claims: (hint) => claims.get(hint) ?? {} });
  return {
    app,
    found: (mode) => Ground.found(app, claims, mode),
    close: () => app.close(),
  };
}

/**
 * An organization with an admin, a SCIM client, and people. A test makes one for each row of its
 * table.
 */
export class Ground {
  readonly #domain = `${randomUUID().slice(0, 13)}.example`;
  readonly humans: Human[] = [];
  readonly admin: Human;
  #token = '';
  #isConnected = false;

  private constructor(
    readonly app: PeopleHost,
    private readonly claims: Claims | undefined,
    readonly mode: Mode,
  ) {
    this.admin = this.human('admin');
  }

  static async found(app: PeopleHost, claims: Claims | undefined, mode: Mode): Promise<Ground> {
    const ground = new Ground(app, claims, mode);
    await ground.admin.join();
    const made = await ground.org('POST', '/scim-tokens', { description: 'a directory' });
    ground.#token = made.json.token as string;
    await ground.#membership('open');
    return ground;
  }

  /** Returns an e-mail address in the domain of the organization. */
  at(local: string): string {
    return `${local}@${this.#domain}`;
  }

  /**
   * Creates a person who has not signed in yet. `own` has the local parts of further e-mail
   * addresses of the person.
   */
  human(local: string, ...own: readonly string[]): Human {
    const addresses = own.map((each) => this.at(each));
    const human = new Human(this.app, this.claims, this.at(local), addresses);
    this.humans.push(human);
    return human;
  }

  /** Creates a person who signs in and enrolls a key. */
  async member(local: string, ...own: readonly string[]): Promise<Human> {
    const human = this.human(local, ...own);
    await human.join();
    return human;
  }

  /** Sends a SCIM request as the SCIM client of the organization. */
  async scim(method: string, path: string, body?: unknown): Promise<Answer> {
    if (!this.#isConnected) {
      this.#isConnected = true;
      if (this.mode === 'scim_only') await this.#membership('scim_only');
    }
    const answer = await this.app.client().send(method, `/scim/v2${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: { authorization: `Bearer ${this.#token}`, origin: '' },
    });
    expectEqual(answer.status < 500, true, answer.text);
    return answer;
  }

  /** Creates a user by SCIM, and returns the id. */
  async post(body: object): Promise<string> {
    const answer = await this.scim('POST', '/Users', body);
    expectEqual(answer.status, 201, answer.text);
    return answer.json.id as string;
  }

  async put(id: string, body: object): Promise<Answer> {
    return succeeded(await this.scim('PUT', `/Users/${id}`, body));
  }

  async patch(id: string, ...operations: readonly object[]): Promise<Answer> {
    return succeeded(await this.scim('PATCH', `/Users/${id}`, patchOf(...operations)));
  }

  /** Replaces one attribute of a user by a SCIM PATCH. */
  set(id: string, path: string, value: unknown): Promise<Answer> {
    return this.patch(id, { op: 'replace', path, value });
  }

  async remove(id: string): Promise<void> {
    expectEqual((await this.scim('DELETE', `/Users/${id}`)).status, 204);
  }

  /** Reads a user by SCIM. */
  async show(id: string): Promise<Answer['json']> {
    return succeeded(await this.scim('GET', `/Users/${id}`)).json;
  }

  /** Returns the ids of the users that a SCIM filter finds. */
  async find(filter: string): Promise<string[]> {
    const answer = await this.scim('GET', `/Users?filter=${encodeURIComponent(filter)}`);
    return (succeeded(answer).json.Resources as { id: string }[]).map(({ id }) => id);
  }

  /** Sends a request to the API for admins as the organization's admin. */
  org(method: string, path: string, body?: unknown): Promise<Answer> {
    if (!this.admin.browser) throw new Error('the admin has no session');
    return orgApi(this.admin.browser, method, path, body);
  }

  /**
   * Changes a member by a request of the admin. `name` is the end of the path, such as
   * `deactivate`.
   */
  async act(id: string, name: string): Promise<Answer> {
    return succeeded(await this.org('POST', `/members/${id}/${name}`));
  }

  /** Readmits a removed person by the e-mail address, as the admin. */
  async readmit(email: string): Promise<Answer> {
    return succeeded(await this.org('POST', '/members/readmit', { email }));
  }

  /** Returns the audit events of one type about an account. */
  events(type: string, id: string): Promise<{ class: string; details: Record<string, unknown> }[]> {
    return rows(
      this.app.dataSource,
      'SELECT class, details FROM audit_events WHERE type = $1 AND subject_id = $2 ORDER BY id',
      [type, id],
    );
  }

  /**
   * Checks the expected access of people, and rules that hold at the end of every row. No
   * certificate of a person without access is valid. No certificate has the e-mail address of
   * another person. No account belongs to two people. No other subject gets access by a person's
   * address.
   */
  async check(ends: readonly End[], strangers: 'refused' | 'unchecked' = 'refused'): Promise<void> {
    for (const [human, reach] of ends) {
      const expected = typeof reach === 'object' && reach !== null ? reach : everyWay(reach);
      expectEqual({ [human.email]: await human.reach() }, { [human.email]: expected });
      if (strangers === 'refused') {
        const stranger = await human.double().bySignIn();
        expectEqual(stranger, null, `a stranger who says ${human.email}`);
      }
      if (reach === null) await this.#expectNothingValid(human);
    }
    this.#expectOwnAccounts();
  }

  async #expectNothingValid(human: Human): Promise<void> {
    const serials = human.issued.map(({ serial }) => serial);
    const valid = await rows(
      this.app.dataSource,
      'SELECT serial FROM ssh_certificates WHERE serial = ANY($1::bigint[]) AND revoked_at IS NULL',
      [serials],
    );
    expectEqual(valid, [], `valid certificates of ${human.email}`);
  }

  #expectOwnAccounts(): void {
    const holders = new Map<string, Human>();
    for (const human of this.humans) {
      for (const { userId, principals } of human.issued) {
        expectEqual(
          principals.filter((each) => !human.owns(each)),
          [],
        );
        expectEqual(
          (holders.get(userId) ?? human) === human,
          true,
          `the account of ${human.email}`,
        );
        holders.set(userId, human);
      }
    }
  }

  async #membership(membership: Mode): Promise<void> {
    succeeded(await this.org('PATCH', '', { membership }));
  }
}

function everyWay(principal: string | null): Reach {
  return { session: principal, key: principal, signIn: principal };
}

function succeeded(answer: Answer): Answer {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer;
}

/**
 * Returns the SCIM value of `emails`. It has a primary address of type `work`, and one further
 * address for each type in `more`.
 */
export function emails(primary: string, more: Readonly<Record<string, string>> = {}): object[] {
  const others = Object.entries(more).map(([type, value]) => ({ value, type }));
  return [{ value: primary, type: 'work', primary: true }, ...others];
}
