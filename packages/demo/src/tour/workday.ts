import { z } from 'zod';
import { systemClock } from '@svc/stand-ins/clock';
import { READY } from '../people/people.js';
import { HttpClient, read, unexpected } from '../scenario/http-client.js';
import { newPublicKeyLine } from '../scenario/ssh-steps.js';
import type { TourOrganization } from './organization.js';
import type { TourSshd } from './tour-sshd.js';

/** The kinds of access of the leaving person that the tour shows side by side. */
export const ACCESS_KINDS = ['session', 'certificate', 'application'] as const;
/** A kind of access that the tour checks: one of {@link ACCESS_KINDS}. */
export type AccessKind = (typeof ACCESS_KINDS)[number];

/** The state of one kind of access that the leaving person has or had. */
export interface AccessReport {
  readonly isOpen: boolean;
  /**
   * The seconds from the deletion by SCIM until this access was first refused, or until the
   * application had ended its own session; null before that.
   */
  readonly endedAfter: number | null;
  /** The state in words, such as `Works` or `Refused after 0.2 s`. */
  readonly text: string;
}

/**
 * The access of the person who leaves the company in the tour: for each kind, whether it still
 * works.
 */
export interface WorkdayReport {
  /** False after the person was deleted by SCIM. */
  readonly isEmployed: boolean;
  readonly access: Readonly<Record<AccessKind, AccessReport>>;
}

/**
 * The access that the leaving person got when {@link Workday.begin} last ran, and the kinds of
 * access that still work. Each run makes a new object. So a check that ends late stores its result
 * in the object of its own run, and not in a newer one.
 */
interface Day {
  readonly client: HttpClient;
  readonly serial: string;
  readonly open: Set<AccessKind>;
  readonly endedAfter: Map<AccessKind, number>;
  /** The time of the deletion in milliseconds since 1970. */
  deletedAt?: number;
}

const CERTIFICATE = z.object({ serial: z.string(), certificate: z.string() });
const REVOCATION = z.object({ revoked: z.boolean() });
const APPLICATION_STATE = z.object({ state: z.string(), ended_at: z.number().nullable() });

const KEY_PAIR = 'leaver';
/**
 * The milliseconds for which the result of a check is reused. So many open pages cause no more
 * checks than one page.
 */
const FRESH = 1500;
/**
 * The milliseconds between two checks after the deletion, and the longest wait until all access has
 * ended.
 */
const WATCH = { interval: 300, longest: 30_000 };
/**
 * The client IP address of requests without a login. It differs from that of the visitor, so that
 * the two have separate rate limits.
 */
const ADDRESS = '192.0.2.24';

/**
 * The access of the person who leaves the company: a session, a certificate and a sign-in at the
 * demo application. Each is checked by really using it.
 */
export class Workday {
  readonly #public: HttpClient;
  #day: Day;
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
    this.#public = new HttpClient(parts.baseUrl, ADDRESS);
    this.#day = {
      client: this.#public,
      serial: '',
      open: new Set<AccessKind>(),
      endedAfter: new Map<AccessKind, number>(),
    };
  }

  /**
   * Begins a day of the leaving person, who gets a key, a session, a certificate and a sign-in at
   * the application. If the person was deleted before, the person is created again.
   */
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
    const open = new Set<AccessKind>(ACCESS_KINDS);
    const day: Day = { client, serial: issued.serial, open, endedAfter: new Map() };
    await this.#lookAtAll(day);
    if (open.size < ACCESS_KINDS.length) throw new Error('the leaver has no full access');
    this.#day = day;
    this.#look = undefined;
  }

  /**
   * Begins a new day if the person was deleted. If several visitors click at the same time, only
   * one day begins.
   */
  async comeBack(): Promise<void> {
    if (this.#day.deletedAt === undefined) return;
    this.#returning ??= this.begin().finally(() => (this.#returning = undefined));
    await this.#returning;
  }

  /**
   * Deletes the leaving person by SCIM, as the identity provider of a company does, and measures
   * when the access ends.
   */
  async end(): Promise<void> {
    const start = systemClock.milliseconds();
    if (!(await this.parts.organization.remove(READY.leaver))) return;
    this.#day.deletedAt = start;
    void this.#watch(this.#day, start);
  }

  /**
   * Reports the access of the leaving person, by a check that is at most {@link FRESH} milliseconds
   * old.
   */
  async report(): Promise<WorkdayReport> {
    const now = systemClock.monotonic();
    if (!this.#look || now - this.#look.at > FRESH) {
      this.#look = { at: now, done: this.#lookAtAll(this.#day) };
    }
    await this.#look.done;
    const { open, endedAfter, deletedAt } = this.#day;
    const of = (kind: AccessKind): AccessReport => {
      const isOpen = open.has(kind);
      const seconds = endedAfter.get(kind);
      return { isOpen, endedAfter: seconds ?? null, text: textOf(kind, isOpen, seconds) };
    };
    const [session, certificate, application] = ACCESS_KINDS.map(of) as [
      AccessReport,
      AccessReport,
      AccessReport,
    ];
    return {
      isEmployed: deletedAt === undefined,
      access: { session, certificate, application },
    };
  }

  async #watch(day: Day, start: number): Promise<void> {
    while (day.open.size > 0 && systemClock.milliseconds() - start < WATCH.longest) {
      await this.#lookAtAll(day).catch(() => {});
      await systemClock.sleep(WATCH.interval);
    }
  }

  /**
   * Checks each kind of access that still works. Access that has ended is not checked again,
   * because it never comes back.
   */
  async #lookAtAll(day: Day): Promise<void> {
    const look = async (kind: AccessKind) => {
      if (!day.open.has(kind)) return;
      const endedAt = await this.#endOf(day, kind);
      if (endedAt === undefined || !day.open.delete(kind) || day.deletedAt === undefined) return;
      day.endedAfter.set(kind, Number(((endedAt - day.deletedAt) / 1000).toFixed(3)));
    };
    await Promise.all(ACCESS_KINDS.map(look));
  }

  /**
   * Returns the time at which an access ended, in milliseconds since 1970; undefined if it works.
   * It is the time of this check, unless the application states when its session ended.
   */
  async #endOf(day: Day, kind: AccessKind): Promise<number | undefined> {
    if (kind === 'application') {
      const page = await day.client.get(`${this.parts.applicationUrl}/state`);
      const { state, ended_at } = read(page, APPLICATION_STATE);
      return state === 'signed-in' ? undefined : (ended_at ?? systemClock.milliseconds());
    }
    const works =
      kind === 'session'
        ? (await day.client.get('/v1/keys')).status === 200
        : await this.#certificateWorks(day);
    return works ? undefined : systemClock.milliseconds();
  }

  /**
   * Tries a login at the real sshd. On a machine without sshd, it asks the service if the
   * certificate is revoked.
   */
  async #certificateWorks({ serial }: Day): Promise<boolean> {
    if (this.parts.sshd) return this.parts.sshd.accepts(KEY_PAIR);
    const path = `/v1/credentials/ssh/krl/${serial}`;
    return !read(await this.#public.get(path), REVOCATION).revoked;
  }
}

function textOf(kind: AccessKind, isOpen: boolean, seconds: number | undefined): string {
  if (isOpen) return 'Works';
  const how = kind === 'application' ? 'Ended by back-channel logout' : 'Refused';
  return seconds === undefined ? how : `${how} after ${seconds} s`;
}
