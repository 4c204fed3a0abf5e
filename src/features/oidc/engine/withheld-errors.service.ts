import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Client, KoaContextWithOIDC, errors } from 'oidc-provider';
import { ConsentsRepository } from '#domain/grants/consents.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { Holders } from '../request/resource-owners.service.js';
import { ErrorAnswers } from './error-responses.service.js';
import { exchangeOf } from '../request/request-context.js';
import { OidcProvider } from './oidc-provider.service.js';

/**
 * Errors of authorization requests that are withheld from a client that registered itself, until the user at the browser has
 * consented to it. A redirect before that would send users from an address that they trust to one that no operator has checked:
 * by a faulty request, by `prompt=none`, or by a refusal (RFC 9700 §4.11.2).
 */
@Injectable()
export class WithheldErrors implements OnModuleInit {
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly manager: EntityManager,
    private readonly oidc: OidcProvider,
    private readonly answers: ErrorAnswers,
    private readonly holders: Holders,
    private readonly consents: ConsentsRepository,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  onModuleInit(): void {
    // No user is asked for consent in that mode, and the suite waits for the errors of clients that it registers.
    if (this.#isCertification) return;
    const { provider } = this.oidc;
    provider.on('authorization.error', note);
    provider.on('server_error', note);
    this.oidc.use(async (ctx, next) => {
      await next();
      await this.#withhold(ctx);
    });
  }

  /** Puts a page of ours in place of a redirect with an error. */
  async #withhold(ctx: KoaContextWithOIDC): Promise<void> {
    const { authorizationError: error } = exchangeOf(ctx);
    if (error === undefined || ctx.status !== 303) return;
    const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
    if (client?.svc_kind !== 'dynamic' || (await this.#hasConsented(ctx, client))) return;
    ctx.remove('location');
    ctx.status = 400;
    await this.answers.show(ctx, codeOf(error), error);
  }

  /** Whether the user at the browser has consented to the client. Where that cannot be told, it is no. */
  async #hasConsented(ctx: KoaContextWithOIDC, { clientId }: Client): Promise<boolean> {
    try {
      const holder = await this.holders.ofBrowser(ctx);
      return (
        holder !== undefined && (await this.consents.has(this.manager, holder.userId, clientId))
      );
    } catch {
      return false;
    }
  }
}

/** Remembers the error that ends a request. */
function note(ctx: KoaContextWithOIDC, error: Error): void {
  exchangeOf(ctx).authorizationError = error;
}

/** The `error` of a response: the library's own errors carry it, and any other is a fault of ours. */
function codeOf(error: Error): string {
  return 'expose' in error && error.expose === true
    ? (error as errors.OIDCProviderError).error
    : 'server_error';
}
