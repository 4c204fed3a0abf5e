import { deviceOf } from '#platform/text/device-name.js';
import type { LogoutPreview } from '#domain/sessions/sessions.service.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { displayHost, displayName } from '#domain/oauth/clients/display-name.js';
import type { Client, KoaContextWithOIDC } from '../protocol/library.js';

/** The data that the template of the logout page shows (RP-Initiated Logout §2). */
export interface LogoutPage {
  readonly secret: string | undefined;
  readonly client: { readonly name: string; readonly isDynamic: boolean } | undefined;
  readonly nextHost: string | undefined;
  readonly isLoggedIn: boolean;
  /** True if the page continues by itself, without asking the user. */
  readonly goesOn: boolean;
  /** The applications whose access ends with the session of the browser. */
  readonly ends: readonly string[];
  /**
   * The other sessions of the user, such as those of other devices. The user may choose to end them
   * as well.
   */
  readonly others: readonly OtherSession[];
}

/** Another session of the user, as the logout page shows it. */
interface OtherSession {
  readonly name: string;
  readonly device: string;
  readonly address: string | null;
  readonly until: string;
}

/**
 * Builds the data of the logout page. The OAuth library knows only sessions in which an application
 * was used, so a session cookie of this service also counts as a login.
 *
 * Without a login the page continues by itself, but not to a URL of a client that registered
 * itself. Otherwise a link to this service could redirect users to any site (RFC 9700 §4.11.2).
 */
export function logoutPage(
  { oidc }: KoaContextWithOIDC,
  hasSessionCookie: boolean,
  preview: LogoutPreview = { clients: [], others: [] },
): LogoutPage {
  const client: (Client & OwnMetadata) | undefined = oidc.client;
  const next = oidc.params?.['post_logout_redirect_uri'];
  const isLoggedIn = oidc.session?.accountId !== undefined || hasSessionCookie;
  const isDynamic = client?.svc_kind === 'dynamic';
  return {
    secret: (oidc.session?.state as { readonly secret: string } | undefined)?.secret,
    client: client && { name: displayName(client), isDynamic },
    nextHost: typeof next === 'string' ? displayHost(next) : undefined,
    isLoggedIn,
    goesOn: !isLoggedIn && (!isDynamic || next === undefined),
    ends: preview.clients.map(nameOf),
    others: preview.others.map((session) => ({
      name: session.client ? nameOf(session.client) : 'A browser',
      device: deviceOf(session.userAgent).name,
      address: session.ip,
      until: session.expiresAt.toISOString(),
    })),
  };
}

function nameOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return displayName({ clientId: id, clientName: name ?? undefined });
}
