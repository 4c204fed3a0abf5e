import type { Request, Response } from 'express';
import type { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import { noteRow } from '#platform/http/access/anonymous-row.js';
import type { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { formatUserCode } from '../protocol/user-code.js';
import type { DeviceForm } from './device.schemas.js';

/** An identity provider that the form of the page `/device` offers for the sign-in. */
export interface ProviderChoice {
  readonly slug: string;
  readonly name: string;
}

/** The services and settings by which a browser at the page `/device` is sent to a login. */
export interface LoginServices {
  readonly baseUrl: string;
  readonly isCertification: boolean;
  readonly identityProviders: IdentityProviders;
  readonly sessionCookies: SessionCookies;
}

/**
 * Lists the identity providers from which the user can choose at the page `/device`. In
 * certification test mode the list is empty, because the login page of that mode has its own forms.
 */
export function providerChoices(services: LoginServices): readonly ProviderChoice[] {
  if (services.isCertification) return [];
  return services.identityProviders.list().map(({ slug, name }) => ({ slug, name }));
}

/**
 * Returns the URL at which a browser without a session logs in. It is a URL of the chosen or only
 * identity provider, or that of the login page for the security key. After either login, the
 * browser returns to the form of `/device` with the code that the user typed.
 *
 * @throws DomainError unknown_provider if the form names an identity provider that does not exist
 */
export async function beginLogin(
  form: DeviceForm,
  request: Request,
  response: Response,
  services: LoginServices,
): Promise<string> {
  const [first, ...others] = providerChoices(services);
  const only = others.length === 0 ? first?.slug : undefined;
  const slug = form.sign_in === 'key' ? undefined : form.provider || only;
  if (slug === undefined) return loginPage(form, services);
  noteRow(request);
  const upstream = await services.identityProviders.begin(slug, {
    redirectTo: services.baseUrl + devicePage(form),
    loginHint: undefined,
    browser: services.sessionCookies.ensureBrowserSecret(request, response),
    crossSite: false, // the form is ours: its Origin was checked
  });
  return upstream.href;
}

/**
 * Returns the URL of the login page. After the login, the browser returns to the form of `/device`.
 * If the user chose the security key there, the login page does not ask again.
 */
export function loginPage(form: DeviceForm, { isCertification }: LoginServices): string {
  const query = new URLSearchParams({ redirect_to: devicePage(form) });
  if (form.sign_in === 'key') query.set('way', 'key');
  if (isCertification) query.set('user_code', formatUserCode(form.user_code));
  return `/login?${query.toString()}`;
}

function devicePage({ user_code: typed }: DeviceForm): string {
  return `/device?${new URLSearchParams({ user_code: formatUserCode(typed) }).toString()}`;
}
