import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { TokenSigningKeys } from '#domain/token-signing/token-signing-keys.service.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { noteCaller } from '#platform/http/access/access.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { challengeOnce, nameScheme } from './authenticate-headers.js';
import { requestOf, responseOf } from '../request/request-context.js';
import { OIDC_SCOPES } from '../protocol/scopes.js';
import { OWN_METADATA } from '../protocol/client-metadata.js';
import { OidcProvider } from './oidc-provider.service.js';
import { PageSources } from './page-sources.service.js';
import { RequestObjects } from './request-objects.service.js';

/** What the library leaves out of its answers, or says that is not so here. */
@Injectable()
export class LibrarySteps implements OnModuleInit {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly oidc: OidcProvider,
    private readonly sessions: Sessions,
    private readonly cookies: SessionCookies,
    private readonly pages: PageSources,
    private readonly requests: RequestObjects,
    private readonly keys: TokenSigningKeys,
    private readonly metrics: ServiceMetrics,
  ) {}

  onModuleInit(): void {
    this.oidc.use(async (ctx, next) => {
      await this.requests.resolve(ctx);
      await next();
      noteOAuthCaller(ctx);
      await this.#complete(ctx);
    });
    const { provider } = this.oidc;
    provider.on('grant.success', (ctx: KoaContextWithOIDC) => {
      const body = ctx.body as { readonly id_token?: string };
      if (body.id_token !== undefined) this.metrics.countIssued('oidc');
      if (ctx.oidc.params?.['grant_type'] === 'authorization_code') {
        this.metrics.countAuthEvent('authorization_code_success');
      }
    });
  }

  async #complete(ctx: KoaContextWithOIDC): Promise<void> {
    const oidc = ctx.oidc as KoaContextWithOIDC['oidc'] | undefined;
    if (oidc && AT_HOME.has(oidc.route)) this.#nameHome(ctx.body as Record<string, unknown>);
    switch (oidc?.route) {
      case 'discovery':
        this.#correctDiscovery(ctx.body as Discovery);
        break;
      case 'jwks':
        ctx.body = this.keys.publicJwks(); // with those that only verify what was signed before
        break;
      case 'client':
      case 'client_update':
        if (ctx.status === 200) withholdSecrets(ctx);
        break;
      case 'token':
      case 'introspection':
      case 'revocation':
      case 'pushed_authorization_request':
        nameErrors(ctx);
        nameScheme(ctx);
        break;
      case 'userinfo':
        challengeOnce(ctx, this.config.http.baseUrl);
        if (typeof ctx.body === 'string') ctx.set('content-type', 'application/jwt');
        break;
      case 'device_authorization':
        nameErrors(ctx);
        nameScheme(ctx);
        if (ctx.status === 200) {
          const { pollIntervalSeconds } = this.config.oidc.deviceCode;
          Object.assign(ctx.body as object, { interval: pollIntervalSeconds });
        }
        break;
      case 'end_session':
        // Without an account the library renders a form that sends itself, by a script that our policy forbids.
        if (ctx.status === 200 && oidc.session?.accountId === undefined) this.pages.logout(ctx);
        break;
      case 'end_session_confirm':
        if (ctx.status === 303) await this.#endSession(ctx);
        break;
      case undefined:
      default:
    }
  }

  /** An answer on the mutual-TLS port leads people, and other clients, back to where they can go. */
  #nameHome(body: Record<string, unknown>): void {
    const { mtls, baseUrl } = this.config.http;
    const here = `https://${new URL(baseUrl).hostname}:${mtls.port}/`;
    for (const [name, value] of Object.entries(body)) {
      if (typeof value === 'string' && value.startsWith(here)) {
        body[name] = `${baseUrl}/${value.slice(here.length)}`;
      }
    }
  }

  #correctDiscovery(document: Discovery): void {
    const { tls, mtls, baseUrl } = this.config.http;
    document.request_uri_parameter_supported = true;
    document.require_request_uri_registration = true;
    document.response_modes_supported = document.response_modes_supported.filter(
      (mode) => !mode.startsWith('form_post'),
    );
    document.grant_types_supported = document.grant_types_supported.filter(
      (grant) => grant !== 'refresh_token', // the library knows it, and no client gets one
    );
    document.scopes_supported = [...OIDC_SCOPES]; // those of our own APIs are for our own client alone
    document.claims_supported = document.claims_supported.filter((claim) => claim !== 'sid');
    for (const endpoint of ['introspection', 'revocation']) {
      for (const what of ['methods', 'signing_alg_values']) {
        document[`${endpoint}_endpoint_auth_${what}_supported`] =
          document[`token_endpoint_auth_${what}_supported`];
      }
    }
    if (!tls) return;
    const { hostname, origin } = new URL(baseUrl);
    const aliases = Object.entries(document).filter(([name]) => MUTUAL_TLS_ENDPOINTS.has(name));
    document['mtls_endpoint_aliases'] = Object.fromEntries(
      aliases.map(([name, value]) => [
        name,
        String(value).replace(origin, `https://${hostname}:${mtls.port}`),
      ]),
    );
  }

  /** Ends the browser's own session with the library's, which would follow it again otherwise. */
  async #endSession(ctx: KoaContextWithOIDC): Promise<void> {
    const request = requestOf(ctx);
    if (ctx.oidc.params?.['logout']) {
      for (const token of this.cookies.everyToken(request)) {
        await this.sessions.logOut(token, originOf(request));
      }
      this.cookies.clear(responseOf(ctx));
    }
    // The page's script goes there by itself: the policy lets no form of ours end up at a client's address.
    if (ctx.accepts('html', 'json') === 'json') {
      const location = ctx.response.get('location');
      ctx.remove('location');
      ctx.status = 200;
      ctx.body = { location };
    }
  }
}

/** Notes the client and the user of an OAuth request for the line of the log. */
function noteOAuthCaller(ctx: KoaContextWithOIDC): void {
  const oidc = ctx.oidc as KoaContextWithOIDC['oidc'] | undefined;
  const clientId = oidc?.client?.clientId;
  const userId = oidc?.account?.accountId;
  if (clientId !== undefined || userId !== undefined) noteCaller(ctx.req, { clientId, userId });
}

/** In place of a client's secret there are the hashes of those that are good. A new one is told, once. */
function withholdSecrets(ctx: KoaContextWithOIDC): void {
  const body = ctx.body as Record<string, unknown>;
  if (body['client_secret'] === ctx.oidc.client?.clientSecret) delete body['client_secret'];
  for (const name of OWN_METADATA) delete body[name];
}

/** The library says invalid_request of what RFC 6749 §5.2 has names of its own for. */
function nameErrors(ctx: KoaContextWithOIDC): void {
  const body = ctx.body as { error?: string; error_description?: string };
  const said = ctx.status === 400 ? (body.error_description ?? '') : '';
  if (said.endsWith('is not allowed for this client')) body.error = 'unauthorized_client';
  if (said === 'no client authentication mechanism provided') {
    body.error = 'invalid_client';
    ctx.status = 401;
  }
}

interface Discovery {
  request_uri_parameter_supported: boolean;
  require_request_uri_registration?: boolean;
  response_modes_supported: string[];
  grant_types_supported: string[];
  scopes_supported: string[];
  claims_supported: string[];
  [name: string]: unknown;
}

/** What answers with addresses for people and other clients. */
const AT_HOME: ReadonlySet<string> = new Set([
  'discovery',
  'device_authorization',
  'registration',
  'client',
  'client_update',
]);

/** The endpoints at which a client certificate means something (RFC 8705 §5). */
const MUTUAL_TLS_ENDPOINTS = new Set([
  'token_endpoint',
  'revocation_endpoint',
  'introspection_endpoint',
  'device_authorization_endpoint',
  'registration_endpoint',
  'userinfo_endpoint',
  'pushed_authorization_request_endpoint',
]);
