import { Controller, Get, Inject } from '@nestjs/common';
import {
  SIGNAL_SCOPES,
  signalsResource,
} from '#domain/oauth/shared-signals/receivers.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { RESOURCE_JSON, TRANSMITTER_JSON } from './signals.schemas.js';
import { METHODS } from './stream-json.js';

/**
 * `/.well-known/*`: serves the metadata of this service as a transmitter of signals, and the
 * metadata of a protected resource for its endpoints.
 */
@Controller('.well-known')
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', auth: PUBLIC })
export class TransmitterController {
  readonly #baseUrl: string;

  constructor(@Inject(CONFIG) { http }: Pick<Config, 'http'>) {
    this.#baseUrl = http.baseUrl;
  }

  /** Returns the metadata of the transmitter (Shared Signals Framework §7.1). */
  @Get('ssf-configuration')
  @Route({
    operation: 'getSignalsConfiguration',
    summary: 'Metadata of the transmitter of signals',
    answers: { 200: TRANSMITTER_JSON },
  })
  transmitter(): object {
    const resource = signalsResource(this.#baseUrl);
    return {
      spec_version: '1_0',
      issuer: this.#baseUrl,
      jwks_uri: `${this.#baseUrl}/oauth/jwks`,
      delivery_methods_supported: Object.values(METHODS),
      configuration_endpoint: `${resource}/stream`,
      status_endpoint: `${resource}/status`,
      add_subject_endpoint: `${resource}/subjects/add`,
      remove_subject_endpoint: `${resource}/subjects/remove`,
      verification_endpoint: `${resource}/verify`,
      authorization_schemes: [{ spec_urn: 'urn:ietf:rfc:6749' }],
      default_subjects: 'ALL',
    };
  }

  /** Returns the protected resource metadata (RFC 9728 §2) of the endpoints of Shared Signals. */
  @Get('oauth-protected-resource/ssf')
  @Route({
    resourceMetadata: true,
    operation: 'getSignalsResourceMetadata',
    summary: 'Metadata of the endpoints of signals as a protected resource (RFC 9728)',
    answers: { 200: RESOURCE_JSON },
  })
  protectedResource(): object {
    return {
      resource: signalsResource(this.#baseUrl),
      authorization_servers: [this.#baseUrl],
      scopes_supported: SIGNAL_SCOPES,
      bearer_methods_supported: ['header'],
    };
  }
}
