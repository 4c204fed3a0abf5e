import { Injectable, Logger } from '@nestjs/common';
import type { ErrorOut, KoaContextWithOIDC, Provider, errors } from 'oidc-provider';
import { noteAnsweredError } from '#platform/http/errors/answered-error.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { CATALOGUE } from '#platform/errors/catalogue.js';
import { logError } from '#platform/http/errors/error-log.js';
import { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import { oauthJson } from '#platform/http/errors/oauth-json.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { Views } from '#platform/http/views/views.service.js';
import { Holders } from '../request/resource-owners.service.js';
import { requestOf } from '../request/request-context.js';
import { refusalPage } from './error-page.js';

/** The endpoints that people meet, in a browser; everything else is asked by programs. */
const PAGES: ReadonlySet<string> = new Set([
  'authorization',
  'resume',
  'end_session',
  'end_session_confirm',
  'end_session_success',
]);

/** The library's errors in our voices: a page for people, RFC 6749 for programs, and a line in the log. */
@Injectable()
export class ErrorAnswers {
  readonly #logger = new Logger('oidc');

  constructor(
    private readonly views: Views,
    private readonly holders: Holders,
    private readonly voices: ErrorVoices,
  ) {}

  /** What the library would render by itself, negotiated by `Accept`: here the endpoint decides, and nothing else. */
  async render(ctx: KoaContextWithOIDC, out: ErrorOut, error: Error): Promise<void> {
    if (PAGES.has(ctx.oidc.route)) await this.show(ctx, out.error, error);
    else ctx.body = out;
  }

  /**
   * Answers with the page of an error, in our own words: those of the library are in the log, under the reference that the page
   * shows.
   *
   * @param code the `error` of the response
   */
  async show(ctx: KoaContextWithOIDC, code: string, error: Error): Promise<void> {
    const fault = code === 'server_error' ? asDomainError(error) : undefined;
    const page = fault
      ? { title: CATALOGUE[fault.code].title, detail: fault.detail }
      : { ...refusalPage(code, error, ctx.oidc.route.startsWith('end_session')), code };
    const person = fault ? undefined : await this.holders.ofBrowser(ctx).catch(() => undefined);
    ctx.type = 'html';
    ctx.body = this.views.render('error', {
      ...page,
      reference: interactionIdOf(requestOf(ctx)),
      ...(person && {
        person: {
          email: person.email ?? '',
          name: person.name,
          verified: person.hardwareVerified,
        },
      }),
    });
    if (fault) ctx.status = fault.status;
  }

  /** Logs what goes wrong, and tells our own trouble as such: never as a client's error. */
  listen(provider: Provider): void {
    provider.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        this.#answer(ctx as KoaContextWithOIDC, error);
      }
    });
    provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error) => {
      const fault = asDomainError(error);
      logError(fault);
      if (fault.retryAfter !== undefined) ctx.set('Retry-After', String(fault.retryAfter));
      if (ctx.response.is('html') || ctx.status < 400) return; // a page, or on its way to the client
      const { type, content } = oauthJson(fault);
      ctx.status = fault.status;
      ctx.type = type;
      ctx.body = content;
    });
    for (const event of CLIENT_ERRORS) {
      provider.on(
        event as 'grant.error',
        (ctx: KoaContextWithOIDC, error: errors.OIDCProviderError) => {
          const { error: code, error_description: description, error_detail: detail } = error;
          noteAnsweredError(ctx.res, code);
          this.#logger.warn(
            `${event.replace('.error', '')}: ${code}: ${detail ?? description ?? ''}`,
          );
        },
      );
    }
  }

  /**
   * Answers what went wrong outside of the library's own handlers: it saves the browser's session after them, and what it throws
   * there it would tell as plain text, past our log. Nothing of the answer that had been prepared is sent.
   */
  #answer(ctx: KoaContextWithOIDC, error: unknown): void {
    const { req: request, res: response } = ctx;
    ctx.respond = false;
    if (!response.headersSent) {
      for (const name of ['location', 'set-cookie']) response.removeHeader(name);
    }
    this.voices.answer(asDomainError(error), request, response);
  }
}

/** What the library tells of clients' errors, by endpoint. */
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
