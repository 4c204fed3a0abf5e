import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { systemClock, systemRandom } from '../clock.js';

/** An installation of the GitHub App at an account of the stand-in. */
export interface StandInInstallation {
  readonly id: number;
  readonly account: { id: number; login: string; type: 'User' | 'Organization' };
  repository_selection: 'all' | 'selected';
  /** The names of the repositories to which the installation has access. */
  repositories: string[];
  permissions: Record<string, string>;
  suspended_at: string | null;
  readonly updated_at: string;
}

/** An installation token that the stand-in issued. */
export interface StandInToken {
  readonly token: string;
  readonly installationId: number;
  readonly permissions: Readonly<Record<string, string>>;
  /**
   * The names of the repositories that can be read with the token; undefined for every repository
   * of the installation.
   */
  readonly repositories: readonly string[] | undefined;
  readonly expiresAt: number;
  revoked: boolean;
}

/** A user of the stand-in, who authorizes the GitHub App in a browser. */
export interface StandInUser {
  readonly id: number;
  readonly login: string;
  /** The ids of the installations that the user may see at GitHub. */
  readonly sees: readonly number[];
  /** The ids of the organizations that the user owns. */
  readonly owns: readonly number[];
}

/** The failure that the stand-in simulates, or `none`. With `hanging` it sends no answer. */
export type StandInFault = 'none' | 'rate-limited' | 'secondary-limit' | 'bad-gateway' | 'hanging';

/**
 * A text that the errors of a simulated failure ({@link StandInFault}) contain. A test looks for it
 * in answers of the service, which must not pass texts of GitHub on to its clients.
 */
export const PLANTED_TEXT = 'planted-github-text';

/** All data of the GitHub stand-in, in memory. */
export class StandInState {
  readonly appId = '424242';
  readonly appName = 'svc-stand-in';
  readonly clientId = 'Iv1.5748bd0b3b2c4f6a';
  readonly clientSecret = systemRandom.token();
  readonly webhookSecret = systemRandom.token();
  readonly appKey: KeyObject;
  readonly appPublicKey: KeyObject;
  readonly installations = new Map<number, StandInInstallation>();
  /** Every token that was issued, the oldest first. */
  readonly tokens: StandInToken[] = [];
  /** The issued access tokens of users, by their value. */
  readonly userTokens = new Map<string, { readonly user: StandInUser; revoked: boolean }>();
  readonly codes = new Map<string, { user: StandInUser; challenge: string; redirectUri: string }>();
  /** The requests that were received, as `METHOD /path`, the oldest first. */
  readonly requests: string[] = [];
  fault: StandInFault = 'none';
  /** The user who is logged in at the stand-in, in the browser. */
  browserUser: StandInUser = { id: 1, login: 'octocat', sees: [], owns: [] };
  /**
   * A promise that a test may set. The answer with a new token waits for it, so that the test can
   * end the user's account before the answer is sent.
   */
  parked: Promise<void> | undefined;
  /** The number of installations on a page of a list. */
  pageSize = 100;
  /** The seconds for which a new token is valid. */
  tokenSeconds = 3600;
  #nextId = 1000;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    this.appKey = privateKey;
    this.appPublicKey = publicKey;
  }

  /** Returns a number that the stand-in has not used as an id before. */
  newId(): number {
    this.#nextId += 1;
    return this.#nextId;
  }

  /** Adds an installation of the GitHub App at a new account. */
  install(
    login: string,
    options: Partial<Pick<StandInInstallation, 'repositories' | 'permissions'>> & {
      readonly type?: 'User' | 'Organization';
    } = {},
  ): StandInInstallation {
    const installation: StandInInstallation = {
      id: this.newId(),
      account: { id: this.newId(), login, type: options.type ?? 'Organization' },
      repository_selection: 'all',
      repositories: options.repositories ?? [],
      permissions: options.permissions ?? { contents: 'write', metadata: 'read', issues: 'write' },
      suspended_at: null,
      updated_at: systemClock.now().toISOString(),
    };
    this.installations.set(installation.id, installation);
    return installation;
  }

  /** Finds a token that is valid now; undefined for any other text. */
  liveToken(value: string): StandInToken | undefined {
    const found = this.tokens.find(({ token }) => token === value);
    const installation = found && this.installations.get(found.installationId);
    const isLive =
      found && !found.revoked && found.expiresAt > systemClock.milliseconds() && installation;
    return isLive && installation.suspended_at === null ? found : undefined;
  }
}
