import { z } from 'zod';
import { systemClock } from '#platform/clock/clock.js';
import { READY } from '../people/people.js';
import { HttpClient, read, unexpected } from '../scenario/http-client.js';
import { newPublicKeyLine } from '../scenario/ssh-steps.js';
import type { TourOrganization } from './organization.js';
import type { TourSshd } from './tour-sshd.js';

/** The kinds of access that the tour shows side by side. */
export const ACCESS_KINDS = ['session', 'certificate', 'application'] as const;
/** One of {@link ACCESS_KINDS}. */
export type AccessKind = (typeof ACCESS_KINDS)[number];

/** The state of one kind of access. */
export interface AccessReport {
  readonly isOpen: boolean;
  /** Seconds from the deletion by SCIM to the first refusal; null before it. */
  readonly endedAfter: number | null;
}

/** The access of the leaver. */
export interface WorkdayReport {
  /** False from the deletion by SCIM on. */
  readonly isEmployed: boolean;
  readonly access: Readonly<Record<AccessKind, AccessReport>>;
}

const CERTIFICATE = z.object({ serial: z.string(), certificate: z.string() });
const REVOCATION = z.object({ revoked: z.boolean() });
const APPLICATION_STATE = z.object({ state: z.string() });

const KEY_PAIR = 'leaver';
/** Milliseconds for which a look at all kinds of access counts, however many pages are open. */
const FRESH = 1500;
/** Milliseconds between two looks while the access ends, and the longest wait for its end. */
const WATCH = { interval: 300, longest: 30_000 };
/** The address of questions that anybody may ask, so that they count apart from the visitor's. */
const ADDRESS = '192.0.2.24';

/** The access of the leaver: a session, a certificate and a sign-in at the demo application, each tried for real. */
export class Workday {
  readonly #anyone: HttpClient;
  #client: HttpClient;
  #serial = '';
  #deletedAt: number | undefined;
  #open = new Set<AccessKind>();
  readonly #endedAfter = new Map<AccessKind, number>();
  #returning: Promise<void> | undefined;
  #look: { readonly at: number; readonly done: Promise<void> } | undefined;

  constructor(
    private readonly parts: {
      readonly baseUrl: string;
      readonly organization: TourOrganization;
      readonly applicationUrl: string;
      readonly sshd: TourSshd | undefined;
    },
  ) {
    this.#anyone = new HttpClient(parts.baseUrl, ADDRESS);
    this.#client = this.#anyone;
  }

  /** Begins the day of the leaver, who is made again where the last one left: key, session, certificate, application. */
  async begin(): Promise<void> {
    const { organization, applicationUrl, sshd } = this.parts;
    await organization.provision(READY.leaver);
    const client = await organization.logIn(READY.leaver);
    const publicKey = await (sshd?.newKeyPair(KEY_PAIR) ?? newPublicKeyLine(READY.leaver.email));
    const body = { public_key: publicKey };
    const issued = await client.postFor('/v1/credentials/ssh', body, CERTIFICATE);
    await sshd?.keepCertificate(KEY_PAIR, issued.certificate);
    const page = await client.get(`${applicationUrl}/sign-in`);
    if (page.status !== 200 || page.url.origin !== applicationUrl) throw unexpected(page);
    this.#client = client;
    this.#serial = issued.serial;
    this.#deletedAt = undefined;
    this.#endedAfter.clear();
    this.#look = undefined;
    this.#open = new Set(ACCESS_KINDS);
    await this.#lookAtAll();
    if (this.#open.size < ACCESS_KINDS.length) throw new Error('the leaver has no full access');
  }

  /** Begins a new day of a leaver who left. Presses at the same time begin one. */
  async comeBack(): Promise<void> {
    if (this.#deletedAt === undefined) return;
    this.#returning ??= this.begin().finally(() => (this.#returning = undefined));
    await this.#returning;
  }

  /** Deletes the leaver by SCIM, as the identity provider of a company does, and watches the access end. */
  async end(): Promise<void> {
    const start = systemClock.monotonic();
    if (!(await this.parts.organization.remove(READY.leaver))) return;
    this.#deletedAt = start;
    void this.#watch(start);
  }

  /** Reports the access, as a try of the last moments found it. */
  async report(): Promise<WorkdayReport> {
    const now = systemClock.monotonic();
    if (!this.#look || now - this.#look.at > FRESH) {
      this.#look = { at: now, done: this.#lookAtAll() };
    }
    await this.#look.done;
    const of = (kind: AccessKind): AccessReport => ({
      isOpen: this.#open.has(kind),
      endedAfter: this.#endedAfter.get(kind) ?? null,
    });
    const [session, certificate, application] = ACCESS_KINDS.map(of) as [
      AccessReport,
      AccessReport,
      AccessReport,
    ];
    return {
      isEmployed: this.#deletedAt === undefined,
      access: { session, certificate, application },
    };
  }

  async #watch(start: number): Promise<void> {
    while (this.#open.size > 0 && systemClock.monotonic() - start < WATCH.longest) {
      await this.#lookAtAll().catch(() => {});
      await systemClock.sleep(WATCH.interval);
    }
  }

  /** Tries each kind of access that is open. An access that has ended is not tried again: it never comes back. */
  async #lookAtAll(): Promise<void> {
    const look = async (kind: AccessKind) => {
      if (!this.#open.has(kind) || (await this.#isOpen(kind)) || !this.#open.delete(kind)) return;
      if (this.#deletedAt === undefined) return;
      const seconds = (systemClock.monotonic() - this.#deletedAt) / 1000;
      this.#endedAfter.set(kind, Number(seconds.toFixed(2)));
    };
    await Promise.all(ACCESS_KINDS.map(look));
  }

  async #isOpen(kind: AccessKind): Promise<boolean> {
    if (kind === 'session') return (await this.#client.get('/v1/keys')).status === 200;
    if (kind === 'certificate') return this.#certificateWorks();
    const state = await this.#client.get(`${this.parts.applicationUrl}/state`);
    return read(state, APPLICATION_STATE).state === 'signed-in';
  }

  /** Tries a login at the real sshd; without one it asks the service for the revocation. */
  async #certificateWorks(): Promise<boolean> {
    if (this.parts.sshd) return this.parts.sshd.accepts(KEY_PAIR);
    const path = `/v1/credentials/ssh/krl/${this.#serial}`;
    return !read(await this.#anyone.get(path), REVOCATION).revoked;
  }
}
