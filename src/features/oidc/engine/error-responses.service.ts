import { Inject, Injectable, Logger } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { hasConsent } from '#domain/oauth/clients/dynamic-clients.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { CATALOGUE } from '#platform/errors/catalogue.js';
import { noteResponseError } from '#platform/http/errors/error-log.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { oauthJson } from '#platform/http/errors/error-formats.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { Views } from '#platform/http/views/views.service.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import type {
  Client,
  ErrorOut,
  KoaContextWithOIDC,
  Provider,
  errors,
} from '../protocol/library.js';
import { requestContextOf, requestOf } from '../request/request-context.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { errorPage } from './error-page.js';

/**
 * The endpoints, by the OAuth library's names, whose errors are shown to the user of a browser.
 * Programs call the other endpoints.
 */
const PAGES: ReadonlySet<string> = new Set([
  'authorization',
  'resume',
  'end_session',
  'end_session_confirm',
  'end_session_success',
]);

/**
 * Renders an error of the OAuth library in three ways: as a page for a user, as JSON for a program
 * (RFC 6749 §5.2), and as a line in the log.
 */
@Injectable()
export class ErrorResponses {
  readonly #logger = new Logger('oidc');
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly manager: EntityManager,
    private readonly resourceOwners: ResourceOwners,
    private readonly views: Views,
    private readonly errorRenderer: ErrorRenderer,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  /**
   * Renders an error of the OAuth library. The endpoint decides the format, and not the header
   * `Accept`, by which the library itself would decide.
   */
  async render(ctx: KoaContextWithOIDC, out: ErrorOut, error: Error): Promise<void> {
    if (PAGES.has(ctx.oidc.route)) await this.#showPage(ctx, out.error, error);
    else ctx.body = out;
  }

  /**
   * Subscribes to the events of the OAuth library, so that its errors are logged and counted, and
   * faults of this server become JSON.
   */
  listen(provider: Provider): void {
    provider.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        this.#respond(ctx as KoaContextWithOIDC, error);
      }
    });
    provider.on('authorization.error', noteAuthorizationError);
    provider.on('server_error', noteAuthorizationError);
    provider.on('server_error', respondToFault);
    for (const event of CLIENT_ERRORS) {
      provider.on(
        event as 'grant.error',
        (ctx: KoaContextWithOIDC, error: errors.OIDCProviderError) =>
          this.#logClientError(event.replace('.error', ''), ctx, error),
      );
    }
  }

  /**
   * Shows an error page instead of a redirect with the error, if the client registered itself and
   * the user has not consented to it. Otherwise a link to our trusted host could send users to a
   * URL that is not checked (RFC 9700 §4.11.2).
   */
  async withholdRedirect(ctx: KoaContextWithOIDC): Promise<void> {
    // In certification test mode no user is asked for consent, and the conformance suite expects
    // the redirects.
    if (this.#isCertification || ctx.status !== 303) return;
    const { authorizationError: error } = requestContextOf(ctx);
    if (error === undefined) return;
    const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
    if (client?.svc_kind !== 'dynamic' || (await this.#hasConsented(ctx, client))) return;
    ctx.remove('location');
    ctx.status = 400;
    await this.#showPage(ctx, codeOf(error), error);
  }

  /**
   * Shows the page of an error with a reference, which is an id of the request. The log has the
   * same reference and the OAuth library's own text.
   */
  async #showPage(ctx: KoaContextWithOIDC, code: string, error: Error): Promise<void> {
    const fault = code === 'server_error' ? asDomainError(error) : undefined;
    const page = fault
      ? { title: CATALOGUE[fault.code].title, detail: fault.detail }
      : { ...errorPage(code, error, ctx.oidc.route.startsWith('end_session')), code };
    const user = fault
      ? undefined
      : await this.resourceOwners.ofBrowser(ctx).catch(() => undefined);
    ctx.type = 'html';
    ctx.body = this.views.render('error', {
      ...page,
      reference: interactionIdOf(requestOf(ctx)),
      ...(user && {
        person: { email: user.email ?? '', name: user.name, verified: user.hardwareVerified },
      }),
    });
    if (fault) ctx.status = fault.status;
  }

  /**
   * Returns true if the user of the browser has consented to a client. A failed look-up counts as
   * missing consent.
   */
  async #hasConsented(ctx: KoaContextWithOIDC, { clientId }: Client): Promise<boolean> {
    try {
      const user = await this.resourceOwners.ofBrowser(ctx);
      return user !== undefined && (await hasConsent(this.manager, user.userId, clientId));
    } catch {
      return false;
    }
  }

  #logClientError(
    endpoint: string,
    ctx: KoaContextWithOIDC,
    { error: code, error_description: description, error_detail: detail }: errors.OIDCProviderError,
  ): void {
    noteResponseError(ctx.res, code);
    this.#logger.warn(`${endpoint}: ${code}: ${detail ?? description ?? ''}`);
  }

  /**
   * Responds to an error outside the OAuth library's own handlers, for example when the library
   * saves the browser's session. The library would send plain text and log nothing. The response
   * that the library prepared is discarded.
   */
  #respond(ctx: KoaContextWithOIDC, error: unknown): void {
    const { req: request, res: response } = ctx;
    ctx.respond = false;
    if (!response.headersSent) {
      for (const name of ['location', 'set-cookie']) response.removeHeader(name);
    }
    this.errorRenderer.render(asDomainError(error), request, response);
  }
}

/**
 * Stores the error that ends an authorization request in the request context, so that
 * `withholdRedirect` can read it there.
 */
function noteAuthorizationError(ctx: KoaContextWithOIDC, error: Error): void {
  requestContextOf(ctx).authorizationError = error;
}

/**
 * Responds to a fault of the server as JSON, unless the response is a page or a redirect to the
 * client.
 */
function respondToFault(ctx: KoaContextWithOIDC, error: Error): void {
  const fault = asDomainError(error);
  logError(fault);
  if (fault.retryAfter !== undefined) ctx.set('Retry-After', String(fault.retryAfter));
  if (ctx.response.is('html') || ctx.status < 400) return;
  const { type, content } = oauthJson(fault);
  ctx.status = fault.status;
  ctx.type = type;
  ctx.body = content;
}

/**
 * Returns the `error` of a response. An error of the OAuth library has one; any other error is a
 * fault of the server.
 */
function codeOf(error: Error): string {
  return 'expose' in error && error.expose === true
    ? (error as errors.OIDCProviderError).error
    : 'server_error';
}

/** The events by which the OAuth library reports errors of clients, one for each endpoint. */
const CLIENT_ERRORS = [
  'authorization.error',
  'grant.error',
  'introspection.error',
  'revocation.error',
  'userinfo.error',
  'pushed_authorization_request.error',
  'device_authorization.error',
  'registration_create.error',
  'registration_read.error',
  'registration_update.error',
  'registration_delete.error',
  'end_session.error',
  'end_session_confirm.error',
] as const;
