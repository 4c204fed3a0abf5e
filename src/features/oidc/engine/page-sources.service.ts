import { Injectable } from '@nestjs/common';
import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { Views } from '#platform/http/views/views.service.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { displayHost, displayName } from '../protocol/clients/display-name.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { requestOf } from '../request/request-context.js';

/** Our pages in place of the library's: no inline script, nothing from elsewhere. */
@Injectable()
export class PageSources {
  constructor(
    private readonly views: Views,
    private readonly cookies: SessionCookies,
  ) {}

  /**
   * Asks whether to log out (RP-Initiated Logout §2), whoever has a session here, of whatever kind: the library knows only
   * those that an application was given. Where there is no session the page goes on by itself, but never to the address of a
   * client that registered itself: that would make an open redirector of it (RFC 9700 §4.11.2).
   */
  readonly logout = (ctx: KoaContextWithOIDC): void => {
    const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
    const next = ctx.oidc.params?.['post_logout_redirect_uri'];
    const isLoggedIn =
      ctx.oidc.session?.accountId !== undefined || this.cookies.token(requestOf(ctx)) !== undefined;
    const isDynamic = client?.svc_kind === 'dynamic';
    ctx.type = 'html';
    ctx.body = this.views.render('end-session', {
      secret: (ctx.oidc.session?.state as { readonly secret: string } | undefined)?.secret,
      client: client && { name: displayName(client), isDynamic },
      nextHost: typeof next === 'string' ? displayHost(next) : undefined,
      isLoggedIn,
      goesOn: !isLoggedIn && (!isDynamic || next === undefined),
    });
  };

  /** Says that it is done, where the client named no address to go on to. */
  readonly loggedOut = (ctx: KoaContextWithOIDC): void => {
    ctx.type = 'html';
    ctx.body = this.views.render('logged-out', {});
  };

  /** What is kept of whoever asks for a device code: the person who approves it sees it. */
  readonly deviceInfo = (ctx: KoaContextWithOIDC): Record<string, unknown> => ({
    ip: clientAddressOf(requestOf(ctx)) ?? null,
    userAgent: ctx.get('user-agent').slice(0, 512),
  });
}
