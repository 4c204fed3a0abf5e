import type { ClientRow } from '#domain/oauth/clients/clients.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import type { OidcProvider } from '../../engine/oidc-provider.service.js';
import { libraryMetadata } from '../../protocol/client-metadata.js';
import { keysProblem } from '../../protocol/clients/client-keys.js';
import { errors, type ClientMetadata } from '../../protocol/library.js';
import { metadataOf } from '#domain/oauth/applications/registration-metadata.js';
import { problemOf } from './registration-rules.js';
import type { Registration } from '#domain/oauth/applications/registration.js';

/** The URLs in the metadata of an application to which this service itself sends requests. */
type CalledAddresses = {
  readonly [Name in 'jwks_uri' | 'backchannel_logout_uri']?: string | null | undefined;
};

/**
 * Checks the URLs in the metadata of an application from which this service fetches keys, and to
 * which it sends logout tokens.
 * @throws DomainError invalid_request for a URL to which no request may be sent
 */
export async function checkCalledAddresses(
  { jwks_uri, backchannel_logout_uri }: CalledAddresses,
  outboundHttp: OutboundHttp,
): Promise<void> {
  for (const [name, address] of Object.entries({ jwks_uri, backchannel_logout_uri })) {
    if (typeof address !== 'string') continue;
    try {
      await outboundHttp.assertAllowed(address);
    } catch (cause) {
      const detail = `${name}: is not a URL that may be fetched`;
      throw new DomainError('invalid_request', detail, { cause });
    }
  }
}

/**
 * Checks a registration by our own rules and by those of the OAuth library.
 *
 * @returns the metadata to store
 * @throws DomainError invalid_request with a description of the fault
 */
export async function checkedMetadata(
  registration: Registration,
  client: Pick<ClientRow, 'id' | 'ownerId' | 'orgId'>,
  { provider, hasMutualTls }: OidcProvider,
): Promise<Record<string, unknown>> {
  const problem = problemOf(registration);
  if (problem !== undefined) throw new DomainError('invalid_request', problem);
  if (registration.sender_constraint === 'mtls' && !hasMutualTls) {
    throw new DomainError(
      'invalid_request',
      'sender_constraint: mtls needs TLS, which is off here',
    );
  }
  const metadata = metadataOf(registration);
  const read = libraryMetadata({
    ...client,
    metadata,
    kind: 'application',
    secretHashes: [],
    isUsedToday: true,
    approvedUris: null,
    receivesSignals: false,
  });
  try {
    await provider.Client.validate(read as unknown as ClientMetadata);
  } catch (error) {
    if (!(error instanceof errors.InvalidClientMetadata)) throw error;
    throw new DomainError('invalid_request', detailOf(error));
  }
  const keys = keysProblem(metadata);
  if (keys !== undefined) throw new DomainError('invalid_request', keys);
  return metadata;
}

/**
 * Returns a text about the fault, in which the settings have the names of our API and not those of
 * the OAuth library. It does not show the whole error, because that may contain a private key that
 * was sent by mistake.
 */
function detailOf({
  error_description: description = '',
  cause,
}: errors.InvalidClientMetadata): string {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return (description + reason).replaceAll('token_endpoint_auth_method', 'auth_method');
}
