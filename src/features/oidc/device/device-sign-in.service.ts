import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { IdentityProviders } from '#domain/identity-providers/identity-providers.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import type { DeviceForm } from './device.schemas.js';
import { formatUserCode } from '../protocol/user-code.js';

/** An identity provider as the form offers it. */
export interface ProviderChoice {
  readonly slug: string;
  readonly name: string;
}

/** Where the form of `/device` leads a browser that has no session: upstream, or to the security key. */
@Injectable()
export class DeviceSignIn {
  readonly #baseUrl: string;
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly providers: IdentityProviders,
    private readonly cookies: SessionCookies,
  ) {
    this.#baseUrl = config.http.baseUrl;
    this.#isCertification = config.certification.token !== undefined;
  }

  /** The identity providers to choose from; none in certification test mode, where the login page has the forms of the suite. */
  choices(): readonly ProviderChoice[] {
    if (this.#isCertification) return [];
    return this.providers.list().map(({ slug, name }) => ({ slug, name }));
  }

  /**
   * Tells where a browser without a session goes on: to the provider that was chosen or is the only one, and to the login page
   * for the security key. Either leads back to the form, where the code stands.
   *
   * @throws DomainError unknown_provider
   */
  async begin(form: DeviceForm, request: Request, response: Response): Promise<string> {
    const [first, ...others] = this.choices();
    const only = others.length === 0 ? first?.slug : undefined;
    const slug = form.sign_in === 'key' ? undefined : form.provider || only;
    if (slug === undefined) return this.loginPage(form);
    const upstream = await this.providers.begin(slug, {
      redirectTo: this.#baseUrl + backTo(form),
      loginHint: undefined,
      browser: this.cookies.ensureBrowserSecret(request, response),
      crossSite: false, // the form is ours, by its Origin
    });
    return upstream.href;
  }

  /** The login page, which leads back to the form. */
  loginPage(form: DeviceForm): string {
    const query = new URLSearchParams({ redirect_to: backTo(form) });
    if (this.#isCertification) query.set('user_code', formatUserCode(form.user_code));
    return `/login?${query.toString()}`;
  }
}

function backTo({ user_code: typed }: DeviceForm): string {
  return `/device?${new URLSearchParams({ user_code: formatUserCode(typed) }).toString()}`;
}
