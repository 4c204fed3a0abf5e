import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordConsent } from '#domain/oauth/clients/dynamic-clients.repository.js';
import {
  PendingLogins,
  type LoggedIn,
  type PendingLogin,
  type WaitingApplication,
} from '#domain/oauth/grants/pending-logins.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { systemClock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { readCookie } from '#platform/http/access/cookies.js';
import { Devices } from '../device/devices.service.js';
import { removeAccount } from '../engine/library-patches.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { loginOf } from '../engine/session-sync.js';
import { epochSeconds } from '../protocol/claims.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { needsApproval, needsConsent } from '../protocol/consent-rules.js';
import type { Client } from '../protocol/library.js';
import { displayHost, displayName } from '#domain/oauth/clients/display-name.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { consentPage, consentTo, type ConsentPage } from './consent-page.js';
import { isLoggedInFor, loginErrorOf, type Interaction } from './login-prompt.js';
import {
  demandOfDenial,
  hasTouchedFor,
  isAboutReachOf,
  resultOfAdmission,
  type RefusalPage,
} from './refusal-page.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The next step of an authorization request: a redirect, a page that asks for consent, or a page
 * that says that the application does not admit the user.
 */
export type NextStep =
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'ask'; readonly page: ConsentPage }
  | { readonly kind: 'refused'; readonly page: RefusalPage };

/**
 * Handles authorization requests that wait for a login with a security key, or for the user's
 * consent. The OAuth library calls such a request an interaction.
 */
@Injectable()
export class Interactions extends PendingLogins {
  readonly #isCertification: boolean;
  readonly #devicePage: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
    private readonly resourceOwners: ResourceOwners,
    private readonly dataSource: DataSource,
    private readonly devices: Devices,
  ) {
    super();
    this.#isCertification = config.certification.token !== undefined;
    this.#devicePage = `${config.http.baseUrl}/device`;
  }

  /**
   * Decides the next step of a waiting authorization request.
   *
   * @throws DomainError not_found if the request is over, or belongs to another browser
   */
  async next(request: Request, response: Response, uid: string): Promise<NextStep> {
    const interaction = await this.#find(request, response, uid);
    const resourceOwner = await this.resourceOwners.ofBrowser({ req: request });
    if (!resourceOwner || !isLoggedInFor(interaction, resourceOwner)) {
      return redirectTo(this.#loginPage(interaction, resourceOwner !== undefined));
    }
    if (isAboutReachOf(interaction)) {
      const refused = await this.#refusal(interaction, resourceOwner);
      if (refused) return refused;
      return redirectTo(await this.#logIn(request, interaction, resourceOwner));
    }
    if (interaction.prompt.name !== 'login') {
      const application = await this.#application(interaction, resourceOwner);
      if (!application) throw interactionOver();
      return { kind: 'ask', page: consentPage(interaction, resourceOwner, application) };
    }
    const error = loginErrorOf(interaction, resourceOwner);
    if (error) return redirectTo(await finish(interaction, error));
    return redirectTo(await this.#logIn(request, interaction, resourceOwner));
  }

  /**
   * Returns the page for a user that the application does not admit, or the redirect to the login
   * page if another login can change that. Returns undefined if the application admits the user.
   * The decision is made again when the grant is written.
   */
  async #refusal(
    interaction: Interaction,
    resourceOwner: ResourceOwner,
  ): Promise<NextStep | undefined> {
    const clientId = String(interaction.params['client_id']);
    const denied = await this.resourceOwners.expectedDenial(resourceOwner, clientId);
    if (!denied) return undefined;
    const loginPage = this.#loginPage(interaction, true);
    const demand = demandOfDenial(denied);
    if (demand !== undefined && !hasTouchedFor(interaction, resourceOwner)) {
      return redirectTo(loginPage);
    }
    const client = await this.#application(interaction);
    if (!client) throw interactionOver();
    const back = { uid: interaction.uid, host: client.host, loginPage };
    const user = { email: resourceOwner.email ?? '' };
    return { kind: 'refused', page: { client, user, demand, back } };
  }

  /**
   * Continues an authorization request after the login of a user.
   * @returns the URL to which the browser goes next
   */
  async #logIn(
    request: Request,
    interaction: Interaction,
    resourceOwner: ResourceOwner,
  ): Promise<string> {
    await this.#switchAccount(request, resourceOwner);
    const { loginTs, ...login } = loginOf(resourceOwner);
    const result = { login: { ...login, ts: loginTs } };
    const isAdmission = isAboutReachOf(interaction);
    return finish(
      interaction,
      isAdmission ? resultOfAdmission(interaction, resourceOwner, result) : result,
    );
  }

  /**
   * Records the user's consent.
   * @returns the URL to which the browser goes next
   */
  async consent(request: Request, response: Response, uid: string): Promise<string> {
    const interaction = await this.#find(request, response, uid);
    const resourceOwner = await this.resourceOwners.ofBrowser({ req: request });
    const isOfUser = resourceOwner && interaction.session?.accountId === resourceOwner.userId;
    if (interaction.prompt.name !== 'consent' || !isOfUser) throw interactionOver();
    const clientId = String(interaction.params['client_id']);
    const { userId } = resourceOwner;
    await withTransactionRetry(this.dataSource, (tx) =>
      recordConsent(tx, userId, clientId, consentTo(interaction)),
    );
    return finish(interaction, { ...interaction.lastSubmission, consent: {} });
  }

  /**
   * Ends an authorization request without consent: the client receives `access_denied`.
   * @returns the URL to which the browser goes next
   */
  async refuse(request: Request, response: Response, uid: string): Promise<string> {
    const interaction = await this.#find(request, response, uid);
    const isRefused = isAboutReachOf(interaction);
    return finish(
      interaction,
      accessDenied(isRefused ? 'the user has no access' : 'the user refused'),
    );
  }

  /**
   * Finds the application of an authorization request; undefined if the request has expired, or if
   * the client does not exist any more.
   */
  override async applicationOf(uid: string): Promise<WaitingApplication | undefined> {
    const interaction = await this.oidcProvider.provider.Interaction.find(uid);
    return interaction && (await this.#application(interaction));
  }

  override async complete(
    pending: PendingLogin,
    session: LoggedIn,
    origin: AuditOrigin,
  ): Promise<string> {
    if ('userCode' in pending) {
      await this.devices.approve(session.token, pending.userCode, origin);
      return this.#devicePage;
    }
    return this.#finishByUid(pending.interaction, {
      login: { accountId: session.userId, ts: epochSeconds(session.authTime), amr: [] },
      consent: {}, // certification test mode asks no user
    });
  }

  override async deny(pending: PendingLogin): Promise<string> {
    if (!('userCode' in pending)) {
      return this.#finishByUid(pending.interaction, accessDenied('the login was refused'));
    }
    if (await this.devices.refuseUnseen(pending.userCode)) return this.#devicePage;
    throw new DomainError('not_found', 'No device waits with this code.');
  }

  async #finishByUid(uid: string, result: Interaction['result']): Promise<string> {
    const interaction = await this.oidcProvider.provider.Interaction.find(uid);
    if (!interaction) throw interactionOver();
    return finish(interaction, result);
  }

  async #application(
    { params }: Interaction,
    resourceOwner?: ResourceOwner,
  ): Promise<WaitingApplication | undefined> {
    const client = await this.oidcProvider.provider.Client.find(String(params['client_id']));
    return (
      client && {
        name: displayName(client),
        host: displayHost(String(params['redirect_uri'])),
        isDynamic: client['svc_kind'] === 'dynamic',
        isUnapproved: resourceOwner !== undefined && isUnapproved(client, resourceOwner, params),
        policyUri: linkOf(client.policyUri),
        termsUri: linkOf(client.tosUri),
      }
    );
  }

  /**
   * Finds the waiting authorization request with an id. The browser must have the signed cookie of
   * that request.
   *
   * @throws DomainError not_found otherwise
   */
  async #find(request: Request, response: Response, uid: string): Promise<Interaction> {
    const { provider } = this.oidcProvider;
    const { cookies } = provider.createContext(request, response);
    const isOfBrowser = cookies.get(provider.cookieName('interaction'), { signed: true }) === uid;
    const interaction = isOfBrowser ? await provider.Interaction.find(uid) : undefined;
    if (!interaction) throw interactionOver();
    return interaction;
  }

  /**
   * Removes another user's account from the session that the OAuth library keeps for the browser,
   * after that user has logged out of this service. Otherwise the library would refuse the login,
   * because the account of its session may not change.
   */
  async #switchAccount(request: Request, { userId }: ResourceOwner): Promise<void> {
    const { provider } = this.oidcProvider;
    const id = readCookie(request, provider.cookieName('session'));
    const session = await provider.Session.find(id ?? '');
    if (!session || session.accountId === undefined || session.accountId === userId) return;
    removeAccount(session);
    await session.persist();
  }

  #loginPage(interaction: Interaction, isLoggedIn: boolean): string {
    const query = new URLSearchParams({ redirect_to: `/interaction/${interaction.uid}` });
    if (isLoggedIn) query.set('again', 'true');
    if (this.#isCertification) query.set('interaction', interaction.uid);
    const hint = interaction.params['login_hint'];
    if (typeof hint === 'string' && hint.length <= 254) query.set('login_hint', hint);
    return `/login?${query.toString()}`;
  }
}

/**
 * Returns true if the consent page says that no admin has approved the application. That is so for
 * an application of another organization, and for a colleague's application without an approval for
 * this redirect URI.
 */
function isUnapproved(
  client: Client & OwnMetadata,
  resourceOwner: ResourceOwner,
  params: Interaction['params'],
): boolean {
  if (client.svc_kind !== 'application') return false;
  const redirectUri = String(params['redirect_uri']);
  return needsConsent(client, resourceOwner) || needsApproval(client, resourceOwner, redirectUri);
}

/** Returns a URL if it is https, so that a page may show it as a link; undefined otherwise. */
function linkOf(address: string | undefined): string | undefined {
  const url = address === undefined ? null : URL.parse(address);
  return url?.protocol === 'https:' ? url.href : undefined;
}

function redirectTo(location: string): NextStep {
  return { kind: 'redirect', location };
}

/**
 * Stores the outcome of a login or consent in the OAuth library's record of the authorization
 * request.
 *
 * @returns the URL at which the authorization request continues
 */
async function finish(
  interaction: Interaction,
  result: Interaction['result'],
  clock = systemClock,
): Promise<string> {
  interaction.result = result;
  await interaction.save(interaction.exp - clock.seconds());
  return interaction.returnTo;
}

function accessDenied(description: string): Interaction['result'] {
  return { error: 'access_denied', error_description: description };
}

/**
 * Makes the error for an authorization request that has expired or was completed, or that belongs
 * to another browser.
 */
export function interactionOver(): DomainError {
  return new DomainError(
    'not_found',
    'This sign-in is over. Go back to the application and start again.',
  );
}
