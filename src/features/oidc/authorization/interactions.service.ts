import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { decodeJwt } from 'jose';
import type { Provider } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { ConsentsRepository } from '#domain/grants/consents.repository.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import type { WaitingApplication } from '#domain/grants/pending-logins.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { readCookie } from '#platform/http/request/cookies.js';
import { displayHost, displayName } from '../protocol/clients/display-name.js';
import { CLAIMS_OF_SCOPES, epochSeconds } from '../protocol/claims.js';
import { scopeWords } from '../protocol/scopes.js';
import { Holders } from '../request/resource-owners.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { signInOver } from '../protocol/sign-in-over.js';
import { forgetAccount, loginOf } from '../engine/session-sync.service.js';

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;

/** What happens next in an interaction: the browser goes on, or the person is asked. */
export type NextStep =
  | { readonly kind: 'go'; readonly location: string }
  | { readonly kind: 'ask'; readonly page: ConsentPage };

/** An `acr` that a client calls essential. */
interface AcrRequest {
  readonly value?: string;
  readonly values?: readonly (string | undefined)[];
}

/** What the consent page shows. */
export interface ConsentPage {
  readonly uid: string;
  readonly client: WaitingApplication;
  readonly person: { readonly email: string; readonly name: string | null };
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
}

/** What an authorization request waits for: a login with a security key, or the person's consent. */
@Injectable()
export class Interactions {
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidc: OidcProvider,
    private readonly holders: Holders,
    private readonly dataSource: DataSource,
    private readonly consents: ConsentsRepository,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  /**
   * @returns where the browser goes, or what the person is asked
   * @throws DomainError not_found for an interaction that is over, or of another browser
   */
  async next(request: Request, response: Response, uid: string): Promise<NextStep> {
    const interaction = await this.#find(request, response, uid);
    const holder = await this.holders.ofBrowser({ req: request });
    if (!holder || !isLoggedInFor(interaction, holder)) {
      return { kind: 'go', location: this.#loginPage(interaction, holder !== undefined) };
    }
    if (interaction.prompt.name === 'login') {
      const refusal = refusalOf(interaction, holder);
      if (refusal) return { kind: 'go', location: await this.#finish(interaction, refusal) };
      await this.#switchAccount(request, holder);
      return {
        kind: 'go',
        location: await this.#finish(interaction, { login: resultOf(holder) }),
      };
    }
    return { kind: 'ask', page: await this.#consentPage(interaction, holder) };
  }

  /** Records that the person agrees; returns where the browser goes. */
  async agree(request: Request, response: Response, uid: string): Promise<string> {
    const interaction = await this.#find(request, response, uid);
    const holder = await this.holders.ofBrowser({ req: request });
    if (
      interaction.prompt.name !== 'consent' ||
      !holder ||
      interaction.session?.accountId !== holder.userId
    ) {
      throw signInOver();
    }
    const clientId = String(interaction.params['client_id']);
    await this.dataSource.transaction((tx) => this.consents.record(tx, holder.userId, clientId));
    return this.#finish(interaction, { ...interaction.lastSubmission, consent: {} });
  }

  /** Records that the person refuses; returns where the browser goes. */
  async deny(request: Request, response: Response, uid: string): Promise<string> {
    const interaction = await this.#find(request, response, uid);
    return this.#finish(interaction, {
      error: 'access_denied',
      error_description: 'the person refused',
    });
  }

  /** Ends a login as a synthetic person's, or as refused: certification test mode only. Returns where the browser goes. */
  async finishLogin(uid: string, result: Interaction['result']): Promise<string> {
    const interaction = await this.oidc.provider.Interaction.find(uid);
    if (!interaction) throw signInOver();
    return this.#finish(interaction, result);
  }

  /** The application that an interaction is for; undefined where it is over. */
  async applicationOf(uid: string): Promise<WaitingApplication | undefined> {
    const interaction = await this.oidc.provider.Interaction.find(uid);
    return interaction && (await this.#application(interaction));
  }

  async #application({ params }: Interaction): Promise<WaitingApplication | undefined> {
    const client = await this.oidc.provider.Client.find(String(params['client_id']));
    return (
      client && {
        name: displayName(client),
        host: displayHost(String(params['redirect_uri'])),
        isDynamic: client['svc_kind'] === 'dynamic',
      }
    );
  }

  /** By the signed cookie that only the browser has which began it. */
  async #find(request: Request, response: Response, uid: string): Promise<Interaction> {
    const { provider } = this.oidc;
    const { cookies } = provider.createContext(request, response);
    const isTheirs = cookies.get(provider.cookieName('interaction'), { signed: true }) === uid;
    const interaction = isTheirs ? await provider.Interaction.find(uid) : undefined;
    if (!interaction) throw signInOver();
    return interaction;
  }

  async #finish(interaction: Interaction, result: Interaction['result']): Promise<string> {
    interaction.result = result;
    await interaction.save(interaction.exp - Math.floor(Date.now() / 1000));
    return interaction.returnTo;
  }

  /** The library's session may still be another person's, who has logged out since: it refuses to change hands. */
  async #switchAccount(request: Request, holder: ResourceOwner): Promise<void> {
    const id = readCookie(request, this.oidc.provider.cookieName('session'));
    const session = await this.oidc.provider.Session.find(id ?? '');
    if (!session || session.accountId === undefined || session.accountId === holder.userId) return;
    forgetAccount(session);
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

  async #consentPage(interaction: Interaction, holder: ResourceOwner): Promise<ConsentPage> {
    const { params } = interaction;
    const client = await this.#application(interaction);
    if (!client) throw signInOver();
    return {
      uid: interaction.uid,
      client,
      person: { email: holder.email ?? '', name: holder.name },
      scopes: [
        ...new Set([
          ...scopeWords(params['scope'] as string | undefined),
          ...scopesOfClaims(params['claims'] as string | undefined),
        ]),
      ],
      resources: [params['resource'] ?? []].flat().map(String),
    };
  }
}

/** Whether the session is what the prompt asks for: where a login is demanded, an assertion since then. */
function isLoggedInFor({ prompt, iat }: Interaction, holder: ResourceOwner): boolean {
  if (prompt.name !== 'login') return true;
  const isFirst = prompt.reasons.length === 1 && prompt.reasons[0] === 'no_session';
  return isFirst || epochSeconds(holder.authTime) >= (iat ?? Infinity);
}

/**
 * Why the request cannot be answered with this person and what their key proves, after they logged in for it: another would
 * have to log in (OpenID Connect Core §3.1.2.2, §5.5.1), or with something else (§5.5.1.1).
 */
function refusalOf({ prompt, params }: Interaction, holder: ResourceOwner): Interaction['result'] {
  const hint = params['id_token_hint'];
  const { sub, acr } = prompt.details as { sub?: { value?: string }; acr?: AcrRequest };
  const others = [typeof hint === 'string' ? decodeJwt(hint).sub : undefined, sub?.value];
  if (others.some((other) => other !== undefined && other !== holder.userId)) {
    return { error: 'login_required', error_description: 'somebody else is logged in' };
  }
  const wanted = acr && (acr.values ?? [acr.value]);
  if (!wanted || wanted.includes(holder.acr ?? undefined)) return undefined;
  return {
    error: 'unmet_authentication_requirements',
    error_description: 'none of the requested ACRs could be obtained',
  };
}

/** What single claims that a client names (OpenID Connect Core §5.5) let it see, as the scopes that would. */
function scopesOfClaims(claims: string | undefined): string[] {
  const { id_token: idToken, userinfo } = JSON.parse(claims ?? '{}') as Record<string, object>;
  const names = new Set(Object.keys({ ...idToken, ...userinfo }));
  return Object.entries(CLAIMS_OF_SCOPES)
    .filter(([, known]) => known.some((claim) => names.has(claim)))
    .map(([scope]) => scope);
}

function resultOf(holder: ResourceOwner) {
  const { loginTs, ...login } = loginOf(holder);
  return { ...login, ts: loginTs };
}
