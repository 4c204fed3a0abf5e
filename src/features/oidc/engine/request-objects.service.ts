import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { isFapi } from '../protocol/clients/client-rules.js';
import { RESPONSE_MODES, ROUTES } from './configuration.js';
import { OidcProvider } from './oidc-provider.service.js';

/** The address of a pushed request, which is no address at all (RFC 9126 §2.2). */
const PUSHED = 'urn:ietf:params:oauth:request_uri:';

/** Authorization requests that say elsewhere what they ask for (RFC 9101 §5.2), which the library does not read. */
@Injectable()
export class RequestObjects {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly outbound: OutboundHttp,
  ) {}

  /**
   * Puts a request object where its address stands, in an authorization request that has one. The address must be one that
   * the client registered, and lead to no place of ours. Its fragment is the hash of what is found there (OpenID Connect Core
   * §6.2), and is not sent.
   */
  async resolve(ctx: KoaContextWithOIDC): Promise<void> {
    if (
      ctx.method !== 'GET' ||
      ctx.path.toLowerCase().replace(/\/$/, '') !== ROUTES.authorization
    ) {
      return;
    }
    const { request_uri: address, client_id: clientId, response_mode: mode } = ctx.query;
    if (typeof mode === 'string' && !RESPONSE_MODES.includes(mode)) {
      ctx.query = { ...ctx.query, response_mode: 'unsupported' };
    }
    if (typeof address !== 'string' || address.startsWith(PUSHED)) return;
    if (typeof clientId !== 'string' || ctx.query['request'] !== undefined) return; // the library says what is wrong
    const request = await this.#fetch(address, clientId);
    if (request === undefined) return;
    ctx.query = { client_id: clientId, request };
  }

  /** @returns undefined where the library refuses by itself: an address that was not registered */
  async #fetch(address: string, clientId: string): Promise<string | undefined> {
    const client: (Client & OwnMetadata) | undefined =
      await this.oidc.provider.Client.find(clientId);
    if (!client || !isRegisteredUri(address, client.request_uris ?? []) || isFapi(client)) {
      return undefined;
    }
    const [location = '', digest = ''] = address.split('#', 2);
    try {
      const answer = await this.outbound.fetch(location, {
        method: 'GET',
        headers: { accept: 'application/oauth-authz-req+jwt, application/jwt' },
      });
      if (answer.status !== 200) return UNREADABLE;
      const content = Buffer.from(await answer.arrayBuffer());
      if (digest !== '' && hash('sha256', content, 'base64url') !== digest) return UNREADABLE;
      return content.toString('utf8').trim();
    } catch {
      return UNREADABLE;
    }
  }
}

/** In place of a request object that could not be had: the library refuses it, and tells the client. */
const UNREADABLE = 'unreadable';

/**
 * Whether a client registered an address (OpenID Connect Registration §2): to the letter, or without the fragment. One that was
 * registered with a fragment is bound to that content.
 */
export function isRegisteredUri(address: string, registered: readonly string[]): boolean {
  const [location = ''] = address.split('#', 1);
  return registered.includes(address) || registered.includes(location);
}
