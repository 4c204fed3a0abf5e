import { Inject, Injectable } from '@nestjs/common';
import { errors, type ClientMetadata } from 'oidc-provider';
import type { ClientRow } from '#domain/grants/clients.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { keysProblem } from '../protocol/clients/client-keys.js';
import { libraryMetadata } from '../protocol/client-metadata.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { metadataOf } from './registration-metadata.js';
import { problemOf } from './registration-rules.js';
import type { Registration } from './registration.js';

/** What an application may be: our rules first, then those by which the library will read it in every request. */
@Injectable()
export class ApplicationRules {
  readonly #hasMutualTls: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidc: OidcProvider,
    private readonly outbound: OutboundHttp,
  ) {
    this.#hasMutualTls = config.http.tls !== undefined;
  }

  /** @throws DomainError invalid_request when keys are to be fetched from where we may not go */
  async assertKeysAddress(jwksUri: string | null | undefined): Promise<void> {
    if (typeof jwksUri !== 'string') return;
    try {
      await this.outbound.assertAllowed(jwksUri);
    } catch (cause) {
      throw new DomainError('invalid_request', 'jwks_uri: is not an address that may be fetched', {
        cause,
      });
    }
  }

  /**
   * The metadata that is kept of a registration.
   *
   * @throws DomainError invalid_request, saying what is wrong with it
   */
  async metadata(
    registration: Registration,
    client: Pick<ClientRow, 'id' | 'ownerId' | 'orgId'>,
  ): Promise<Record<string, unknown>> {
    const problem = problemOf(registration);
    if (problem !== undefined) throw new DomainError('invalid_request', problem);
    if (registration.sender_constraint === 'mtls' && !this.#hasMutualTls) {
      throw new DomainError(
        'invalid_request',
        'sender_constraint: mtls needs TLS, which is off here',
      );
    }
    const metadata = metadataOf(registration);
    await this.#validate({ ...client, metadata });
    const keys = keysProblem(metadata);
    if (keys !== undefined) throw new DomainError('invalid_request', keys);
    return metadata;
  }

  async #validate(client: Omit<ClientRow, 'kind'>): Promise<void> {
    const read = libraryMetadata({
      ...client,
      kind: 'application',
      secretHashes: [],
      isUsedToday: true,
    });
    try {
      await this.oidc.provider.Client.validate(read as unknown as ClientMetadata);
    } catch (error) {
      if (!(error instanceof errors.InvalidClientMetadata)) throw error;
      throw new DomainError('invalid_request', explain(error));
    }
  }
}

/** In the words of the API. The cause is told but not kept: with a private key sent by mistake it holds the key itself. */
function explain({
  error_description: description = '',
  cause,
}: errors.InvalidClientMetadata): string {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return (description + reason).replaceAll('token_endpoint_auth_method', 'auth_method');
}
