import { hash } from 'node:crypto';
import type { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { RESPONSE_MODES } from '../engine/fixed-options.js';
import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { UNREADABLE_REQUEST_OBJECT, UNSUPPORTED_RESPONSE_MODE } from '../engine/library-patches.js';
import { isFapi, type OwnMetadata } from '../protocol/client-metadata.js';
import type { Client, KoaContextWithOIDC, Provider } from '../protocol/library.js';

/**
 * The prefix of a `request_uri` that names a pushed request. A value with this prefix is no URL to
 * fetch (RFC 9126 §2.2).
 */
const PUSHED = 'urn:ietf:params:oauth:request_uri:';

/**
 * Fetches the request object at the `request_uri` of an authorization request and replaces the
 * parameter by the object (RFC 9101 §5.2). The OAuth library does not fetch it. The client must
 * have registered the URL. The part after `#` in the URL is the hash of the object (OpenID Connect
 * Core §6.2).
 */
export async function resolveRequestObject(
  ctx: KoaContextWithOIDC,
  provider: Provider,
  outboundHttp: OutboundHttp,
): Promise<void> {
  if (
    ctx.method !== 'GET' ||
    ctx.path.toLowerCase().replace(/\/$/, '') !== ENDPOINT_PATHS.authorization
  ) {
    return;
  }
  const { request_uri: address, client_id: clientId, response_mode: mode } = ctx.query;
  if (typeof mode === 'string' && !RESPONSE_MODES.includes(mode)) {
    ctx.query = { ...ctx.query, response_mode: UNSUPPORTED_RESPONSE_MODE };
  }
  if (typeof address !== 'string' || address.startsWith(PUSHED)) return;
  // A request without a client, or with a second request object, is left to the OAuth library,
  // which refuses it.
  if (typeof clientId !== 'string' || ctx.query['request'] !== undefined) return;
  const client: (Client & OwnMetadata) | undefined = await provider.Client.find(clientId);
  const isAllowed =
    client && isRegisteredUri(address, client.request_uris ?? []) && !isFapi(client);
  if (!isAllowed) return; // the library rejects it
  const request = await fetchRequestObject(address, outboundHttp);
  ctx.query = { client_id: clientId, request };
}

/**
 * Fetches a request object. If the fetch fails, it returns a text that the OAuth library refuses.
 */
async function fetchRequestObject(address: string, outboundHttp: OutboundHttp): Promise<string> {
  const [location = '', digest = ''] = address.split('#', 2);
  try {
    const response = await outboundHttp.fetch(location, {
      method: 'GET',
      headers: { accept: 'application/oauth-authz-req+jwt, application/jwt' },
    });
    if (response.status !== 200) return UNREADABLE_REQUEST_OBJECT;
    const content = Buffer.from(await response.arrayBuffer());
    const isExpected = digest === '' || hash('sha256', content, 'base64url') === digest;
    return isExpected ? content.toString('utf8').trim() : UNREADABLE_REQUEST_OBJECT;
  } catch {
    return UNREADABLE_REQUEST_OBJECT;
  }
}

/**
 * Returns true if a client registered a URL of a request object (OpenID Connect Registration §2),
 * either exactly or without the part after `#`. The part after `#` is the hash of the content, by
 * which a client can bind a URL to one content.
 */
function isRegisteredUri(address: string, registered: readonly string[]): boolean {
  const [location = ''] = address.split('#', 1);
  return registered.includes(address) || registered.includes(location);
}
