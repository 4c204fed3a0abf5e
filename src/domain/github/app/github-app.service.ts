import { Inject, Injectable, Logger, Optional, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config, type GitHubSettings } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { UpstreamHttp, type UpstreamAnswer } from '#platform/outbound/upstream-http.js';
import { MINTED, USER_TOKEN, type GitHubPermissions } from './answers.js';
import { appJwtSigner } from './app-jwt.js';
import { GitHubFailure, githubUnavailable, mintingRefused } from './github-failure.js';
import { readAnswer, sendToGitHub, type GitHubRequest } from './github-http.js';
import { administeredBy, type AdministeredInstallations } from './user-installations.js';

/** A request to GitHub for an installation token: a token for repositories of one installation. */
export interface MintRequest {
  readonly installationId: number;
  /**
   * The names of the repositories without their owner; undefined for every repository of the
   * installation.
   */
  readonly repositories: readonly string[] | undefined;
  readonly permissions: GitHubPermissions;
}

/** An installation token that GitHub has just issued. */
export interface MintedToken {
  readonly token: string;
  readonly expiresAt: Date;
  readonly permissions: GitHubPermissions;
  /** The names of the repositories; null for every repository of the installation. */
  readonly repositories: readonly string[] | null;
}

/**
 * The authorization code with which GitHub sent the browser of an admin back to this service (RFC
 * 6749 §4.1.3, RFC 7636 §4.5).
 */
export interface UserCode {
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
}

/**
 * The injection token for the number of seconds that GitHub may take for a response. If no module
 * provides a number, it is 10.
 */
export const GITHUB_ANSWER_TIMEOUT = Symbol('GitHubAnswerTimeout');

/**
 * Sends the requests of this deployment's GitHub App to GitHub, each with a time limit. If
 * SVC_GITHUB_APP_ID is not set, every request fails with github_not_configured.
 */
@Injectable()
export class GitHubApp implements OnApplicationShutdown {
  readonly #log = new Logger('github');
  readonly #settings: GitHubSettings | undefined;
  /** The HTTP client for GitHub; undefined if no GitHub App is configured. */
  readonly #http: UpstreamHttp | undefined;
  readonly #signJwt: (() => Promise<string>) | undefined;

  /** @param answerTimeout the seconds that GitHub may take for a response */
  constructor(
    @Inject(CONFIG) config: Pick<Config, 'github' | 'upstream'>,
    private readonly clock: Clock,
    @Optional() @Inject(GITHUB_ANSWER_TIMEOUT) answerTimeout = 10,
  ) {
    this.#settings = config.github;
    this.#http = this.#settings && new UpstreamHttp(config.upstream.extraCaCerts, answerTimeout);
    this.#signJwt = this.#settings && appJwtSigner(this.#settings, clock);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#http?.close();
  }

  /** The settings of the GitHub App; undefined if none is configured. */
  get configured(): GitHubSettings | undefined {
    return this.#settings;
  }

  /**
   * Returns the settings of the GitHub App.
   *
   * @throws DomainError github_not_configured
   */
  get settings(): GitHubSettings {
    if (this.#settings) return this.#settings;
    throw new DomainError('github_not_configured', 'This service has no GitHub App.');
  }

  /**
   * Asks GitHub for a new installation token. No two calls return the same token.
   *
   * @throws DomainError not_found, github_suspended, permission_not_allowed, github_unavailable
   */
  async mint({ installationId, repositories, permissions }: MintRequest): Promise<MintedToken> {
    const name = 'POST /app/installations/{id}/access_tokens';
    const { apiUrl } = this.settings;
    try {
      const response = await this.#send({
        method: 'POST',
        url: `${apiUrl}/app/installations/${installationId}/access_tokens`,
        name,
        authorization: `Bearer ${await this.#signJwt?.()}`,
        json: { permissions, ...(repositories ? { repositories } : {}) },
      });
      const minted = await readAnswer(response, MINTED, name);
      return {
        token: minted.token,
        expiresAt: new Date(minted.expires_at),
        permissions: minted.permissions,
        repositories: repositories
          ? (minted.repositories?.map((one) => one.name) ?? repositories)
          : null,
      };
    } catch (error) {
      throw mintingRefused(error);
    }
  }

  /**
   * Revokes an installation token.
   *
   * @returns `gone` for a token that GitHub does not know any more, such as an expired one
   * @throws GitHubFailure, or the error of the connection
   */
  async revoke(token: string): Promise<'revoked' | 'gone'> {
    try {
      await this.#send({
        method: 'DELETE',
        url: `${this.settings.apiUrl}/installation/token`,
        name: 'DELETE /installation/token',
        authorization: `Bearer ${token}`,
      });
      return 'revoked';
    } catch (error) {
      if (error instanceof GitHubFailure && error.status === 401) return 'gone';
      throw error;
    }
  }

  /**
   * Exchanges an authorization code for a user token, reads the installations that the user
   * administers, and revokes the user token at once. The user token is never stored.
   *
   * @throws DomainError sign_in_failed for a code that GitHub refuses; github_unavailable
   */
  async administeredInstallations(authorization: UserCode): Promise<AdministeredInstallations> {
    const token = await this.#exchange(authorization);
    const ask = (path: string, name: string) =>
      this.#send({
        url: this.settings.apiUrl + path,
        name,
        authorization: `Bearer ${token}`,
      });
    try {
      const found = await administeredBy(ask, isGitHub(this.settings.apiUrl));
      await this.#revokeUserToken(token);
      return found;
    } catch (error) {
      await this.#revokeUserToken(token).catch(() => {
        this.#log.warn('The token of a GitHub user could not be revoked; it is forgotten');
      });
      throw error instanceof DomainError ? error : githubUnavailable(error);
    }
  }

  async #exchange({ code, codeVerifier, redirectUri }: UserCode): Promise<string> {
    const { webUrl, clientId, clientSecret } = this.settings;
    const name = 'POST /login/oauth/access_token';
    const form = {
      client_id: clientId,
      client_secret: clientSecret,
      code,
      redirect_uri: redirectUri,
      code_verifier: codeVerifier,
    };
    const send = this.#send({
      method: 'POST',
      url: `${webUrl}/login/oauth/access_token`,
      name,
      form,
    });
    try {
      const response = await send;
      return (await readAnswer(response, USER_TOKEN, name)).access_token;
    } catch (cause) {
      if (cause instanceof GitHubFailure && cause.status >= 500) throw githubUnavailable(cause);
      const detail = 'GitHub did not accept the authorization. Start the link again.';
      throw new DomainError('sign_in_failed', detail, { cause });
    }
  }

  async #revokeUserToken(token: string): Promise<void> {
    const { apiUrl, clientId, clientSecret } = this.settings;
    const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
    await this.#send({
      method: 'DELETE',
      url: `${apiUrl}/applications/${encodeURIComponent(clientId)}/token`,
      name: 'DELETE /applications/{client_id}/token',
      authorization: `Basic ${basic}`,
      json: { access_token: token },
    });
  }

  #send(request: GitHubRequest): Promise<UpstreamAnswer> {
    const { appName } = this.settings;
    if (!this.#http) throw new Error('an App without connections');
    return sendToGitHub(this.#http, this.clock, appName, request);
  }
}

/**
 * Returns true if the URL of the API is GitHub's own; false for a GitHub server that the operator
 * runs.
 */
function isGitHub(apiUrl: string): boolean {
  const { hostname } = new URL(apiUrl);
  return hostname === 'api.github.com' || hostname.endsWith('.ghe.com');
}
