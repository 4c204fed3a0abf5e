import { z } from 'zod';
import type { DemoApplication } from '../application/application.js';
import { READY, READY_PEOPLE, type ReadyPerson } from '../people/people.js';
import { enrollKey, logInWithKey, type PluggedInKey } from '../scenario/ceremonies.js';
import { HttpClient, read, unexpected, type HttpResponse } from '../scenario/http-client.js';

/** The part of the demo's data that the organization of the tour needs in the next run. */
export interface OrganizationData {
  readonly scimToken?: string | undefined;
  readonly application?: StoredApplication | undefined;
}

/** The registration of the demo application. */
export interface StoredApplication {
  readonly port: number;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The objects from which the tour's organization is made. */
export interface OrganizationParts {
  readonly baseUrl: string;
  /** The slug of the demo's identity provider. */
  readonly provider: string;
  /** The software key of the pages, which stores its state after each use. */
  readonly key: PluggedInKey;
  readonly data: () => OrganizationData;
  readonly write: (data: OrganizationData) => void;
  /** Describes an event in a sentence, with the words of the service's own pages. */
  readonly describe: (event: SentenceFacts) => string;
}

/** The facts of an event of the audit log that a sentence about it may contain. */
export interface SentenceFacts {
  readonly type: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  readonly actorEmail: string | null;
  readonly subjectEmail: string | null;
  readonly clientName: string | null;
}

const SCIM_TOKEN = z.object({ token: z.string() });
const USERS = z.object({ Resources: z.array(z.object({ id: z.string() })).default([]) });
const APPLICATION = z.object({ client_id: z.string(), client_secret: z.string() });
const REGISTERED = z.object({ backchannel_logout_uri: z.string().nullish() });
const EVENTS = z.object({
  events: z.array(
    z.object({
      id: z.string(),
      type: z.string(),
      created_at: z.string(),
      actor_id: z.string().nullable(),
      subject_id: z.string().nullable(),
      actor_email: z.string().nullable(),
      subject_email: z.string().nullable(),
      client_name: z.string().nullable(),
      details: z.record(z.string(), z.unknown()),
    }),
  ),
});

/** An event of the audit log, as a page of the tour shows it. */
export interface TourEvent {
  readonly type: string;
  readonly created_at: string;
  readonly subject_email: string | null;
  /** The sentence with which the admin console describes the event. */
  readonly sentence: string;
}

/**
 * The client IP addresses of the demo's own requests. They differ from the IP address of the
 * visitor, so that the rate limits count the two separately.
 */
const ADDRESSES = { admin: '192.0.2.20', scim: '192.0.2.21' };
const FIRST_ADDRESS = 30;
const KEY_NAME = 'The demo’s software key';
const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User';

/**
 * The organization of the prepared people. The demo makes and reads it by HTTP requests to the
 * service.
 */
export class TourOrganization {
  readonly #admin: HttpClient;
  readonly #provisioner: HttpClient;

  constructor(private readonly parts: OrganizationParts) {
    this.#admin = new HttpClient(parts.baseUrl, ADDRESSES.admin);
    this.#provisioner = new HttpClient(parts.baseUrl, ADDRESSES.scim);
  }

  /**
   * Makes the parts of the organization that are missing: the organization itself, the SCIM token,
   * the people and their keys. The first login of the admin makes the organization.
   */
  async prepare(): Promise<void> {
    await this.#logIn(this.#admin, READY.admin);
    if (!(await this.#hasToken())) await this.#makeToken();
    for (const person of READY_PEOPLE) {
      if (person === READY.admin) continue;
      await this.provision(person);
      if (person.hasKey) await this.logIn(person);
    }
  }

  /**
   * Creates a person by SCIM if the person does not exist, as the identity provider of a company
   * does.
   */
  async provision({ email, name }: ReadyPerson): Promise<void> {
    if ((await this.#idOf(email)) !== undefined) return;
    const [givenName, familyName] = name.split(' ');
    const body = { schemas: [USER_SCHEMA], userName: email, name: { givenName, familyName } };
    const created = await this.#scim('POST', '/scim/v2/Users', body);
    if (created.status !== 201) throw unexpected(created);
  }

  /**
   * Deletes a person by SCIM.
   *
   * @returns false if the person does not exist any more
   */
  async remove({ email }: ReadyPerson): Promise<boolean> {
    const id = await this.#idOf(email);
    if (id === undefined) return false;
    const deleted = await this.#scim('DELETE', `/scim/v2/Users/${id}`);
    if (deleted.status !== 204 && deleted.status !== 404) throw unexpected(deleted);
    return deleted.status === 204;
  }

  /**
   * Signs a person in at the identity provider and logs in with the key. A person without a key
   * enrolls it first.
   */
  async logIn(person: ReadyPerson): Promise<HttpClient> {
    const address = `192.0.2.${FIRST_ADDRESS + READY_PEOPLE.indexOf(person)}`;
    const client = new HttpClient(this.parts.baseUrl, address);
    await this.#logIn(client, person);
    return client;
  }

  /**
   * Returns the newest events of the audit log, at most `limit`. Logs the admin in again if
   * necessary.
   */
  async newestEvents(limit: number): Promise<TourEvent[]> {
    const path = `/api/v1/org/audit-events?limit=${limit}`;
    const response = await this.#admin.get(path);
    if (response.status !== 401) return this.#shown(response);
    await this.#logIn(this.#admin, READY.admin); // the visitor may have ended the session
    return this.#shown(await this.#admin.get(path));
  }

  /**
   * Returns the registration of the application at a port. The application is registered in the
   * first run, and again if its port or its URL for logout tokens has changed.
   */
  async application(
    port: number,
    registration: DemoApplication['registration'],
  ): Promise<StoredApplication> {
    const stored = this.parts.data().application;
    if (stored?.port === port && (await this.#isRegistered(stored, registration))) return stored;
    const made = await this.#admin.postFor('/api/v1/applications', registration, APPLICATION);
    const application = { port, clientId: made.client_id, clientSecret: made.client_secret };
    this.parts.write({ application });
    return application;
  }

  /**
   * Returns true if the application is registered with its present URL for logout tokens. A
   * registration by an earlier version of the demo, which sent no such URL, does not count.
   */
  async #isRegistered(
    { clientId }: StoredApplication,
    { backchannel_logout_uri }: DemoApplication['registration'],
  ): Promise<boolean> {
    const known = await this.#admin.get(`/api/v1/applications/${clientId}`);
    if (known.status !== 200) return false;
    return read(known, REGISTERED).backchannel_logout_uri === backchannel_logout_uri;
  }

  async #logIn(client: HttpClient, { email }: ReadyPerson): Promise<void> {
    const { provider, key } = this.parts;
    const query = new URLSearchParams({ provider, login_hint: email });
    const page = await client.get(`/login?${query.toString()}`);
    if (page.status !== 200) throw unexpected(page);
    if (page.url.pathname === '/enroll') {
      await enrollKey(client, { key, name: KEY_NAME, response: z.object({}) });
    }
    await logInWithKey(client, key);
  }

  async #hasToken(): Promise<boolean> {
    if (this.parts.data().scimToken === undefined) return false;
    return (await this.#scim('GET', '/scim/v2/Users?count=0')).status === 200;
  }

  async #makeToken(): Promise<void> {
    const description = 'The demo’s identity provider';
    const path = '/api/v1/org/scim-tokens';
    const { token: scimToken } = await this.#admin.postFor(path, { description }, SCIM_TOKEN);
    this.parts.write({ scimToken });
  }

  async #idOf(email: string): Promise<string | undefined> {
    const query = new URLSearchParams({ filter: `userName eq "${email}"` });
    const found = await this.#scim('GET', `/scim/v2/Users?${query.toString()}`);
    return read(found, USERS).Resources[0]?.id;
  }

  #scim(method: string, path: string, body?: object) {
    const token = this.parts.data().scimToken ?? '';
    return this.#provisioner.sendWithToken(token, method, path, body);
  }

  /** Converts a page of the audit log to events with sentences. */
  #shown(page: HttpResponse): TourEvent[] {
    return read(page, EVENTS).events.map((event) => {
      const { type, created_at, subject_email, details } = event;
      const sentence = this.parts.describe({
        type,
        details,
        actorId: event.actor_id,
        subjectId: event.subject_id,
        actorEmail: event.actor_email,
        subjectEmail: subject_email,
        clientName: event.client_name,
      });
      return { type, created_at, subject_email, sentence };
    });
  }
}
