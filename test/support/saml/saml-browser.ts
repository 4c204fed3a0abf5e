import { inflateRawSync } from 'node:zlib';
import { Client, type Answer } from '../client.js';
import type { Asked } from './forger.js';

/** The last page after all redirects, and its URL. */
export interface Landed extends Answer {
  readonly url: URL;
}

/** Begins a sign-in, and returns the SAML request in the redirect to the provider. */
export async function beginSamlSignIn(
  client: Client,
  slug: string,
  redirectTo = '/account/keys',
): Promise<Asked & { readonly request: string; readonly url: URL }> {
  const query = new URLSearchParams({ provider: slug, redirect_to: redirectTo });
  const away = await client.get(`/login?${query.toString()}`);
  const location = away.headers.get('location');
  if (location === null) throw new Error(`no redirect: ${away.status} ${away.text}`);
  return readRequest(new URL(location));
}

/** Decodes a request of the HTTP-Redirect binding (SAML Bindings §3.4). */
export function readRequest(url: URL): Asked & { readonly request: string; readonly url: URL } {
  const packed = Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64');
  const request = inflateRawSync(packed).toString();
  const find = (pattern: RegExp) => pattern.exec(request)?.[1] ?? '';
  return {
    url,
    request,
    requestId: find(/<[^>]*\bID="([^"]*)"/),
    acsUrl: find(/AssertionConsumerServiceURL="([^"]*)"/),
    audience: find(/<(?:\w+:)?Issuer[^>]*>([^<]*)</),
    relayState: url.searchParams.get('RelayState') ?? '',
  };
}

/** Encodes a SAML response for the HTTP-POST binding, in base64. */
export function encoded(xml: string | Buffer): string {
  return Buffer.from(xml).toString('base64');
}

/** The fields of the form that a browser posts from the provider's page to the service. */
export interface AcsForm {
  readonly samlResponse: string;
  readonly relayState: string;
}

/**
 * Posts a form to `/saml/acs` (the assertion consumer service) as a browser does from another site.
 * So it sends no cookies with `SameSite=Lax`.
 */
export function postToAcs(
  client: Pick<Client, 'baseUrl' | 'address'>,
  { samlResponse, relayState }: AcsForm,
  providerOrigin = 'http://127.0.0.1',
): Promise<Answer> {
  const body = new URLSearchParams({ SAMLResponse: samlResponse, RelayState: relayState });
  return new Client(client.baseUrl, client.address).post('/saml/acs', body.toString(), {
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: providerOrigin,
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    },
  });
}

/**
 * Posts a form, and follows the redirects with the cookies of the browser. Returns the last page.
 */
export async function comeBack(client: Client, form: AcsForm): Promise<Landed> {
  const posted = await postToAcs(client, form);
  const location = posted.headers.get('location');
  if (posted.status !== 303 || location === null)
    return { ...posted, url: new URL('/saml/acs', client.baseUrl) };
  return client.follow(new URL(location, client.baseUrl).href);
}

/** Returns the fields and the URL of a form that submits itself. */
export function readForm(page: string): { readonly action: string; readonly form: AcsForm } {
  const attribute = (tag: string, name: string) =>
    unescapeHtml(new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? '');
  const tag = /<form\b[^>]*>/.exec(page)?.[0] ?? '';
  const inputs = new Map(
    [...page.matchAll(/<input\b[^>]*>/g)].map(([input]) => [
      attribute(input, 'name'),
      attribute(input, 'value'),
    ]),
  );
  return {
    action: attribute(tag, 'action'),
    form: {
      samlResponse: inputs.get('SAMLResponse') ?? '',
      relayState: inputs.get('RelayState') ?? '',
    },
  };
}

/** Replaces the character references of HTML, such as `&amp;`, by characters. */
export function unescapeHtml(text: string): string {
  const names: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>' };
  return text.replace(/&(#x?[0-9a-f]+|\w+);/gi, (whole, name: string) => {
    if (name.startsWith('#x')) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)));
    return names[name] ?? whole;
  });
}

/** Returns the text of a page. A failed expectation shows it, because it names the cause. */
export function textOf(page: Landed): string {
  return page.text
    .replace(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}
