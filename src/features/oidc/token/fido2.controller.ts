import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { z } from 'zod';
import type { RequestOptionsJSON } from '#domain/keys/authenticators/ceremony/webauthn-json.js';
import { WebAuthnCeremonies } from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { FIDO2_GRANT } from '#domain/oauth/applications/grant-types.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { Fido2Grant } from './fido2-grant.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/** The form of `POST /oauth/fido2/challenge`. */
const CHALLENGE_FORM = z
  .object({
    client_id: z.string().max(256).describe('The id of the client.'),
    dpop_jkt: z
      .string()
      .regex(/^[\w-]{43}$/, 'must be the SHA-256 thumbprint of a key')
      .optional()
      .describe(
        'The thumbprint of the DPoP key to which the token will be bound (as in RFC 9449 §10).',
      ),
  })
  .describe('The client that will redeem the assertion.');

/**
 * `POST /oauth/fido2/challenge`: gives a challenge for the FIDO2 grant, by which a client without a
 * browser gets tokens.
 */
@Controller('oauth/fido2/challenge')
@Route({
  tier: 'authentication',
  body: { kind: 'form' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class Fido2Controller {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly fido2Grant: Fido2Grant,
    private readonly webAuthnCeremonies: WebAuthnCeremonies,
  ) {}

  /** Gives a challenge to a client, which authenticates later, when it redeems the assertion. */
  @Post()
  @Route({
    operation: 'createFido2Challenge',
    summary: 'Issues a challenge for the FIDO2 grant',
    ...OAUTH_ROUTES.challenge,
  })
  @HttpCode(200)
  async createChallenge(
    @Body({ schema: CHALLENGE_FORM })
    { client_id: clientId, dpop_jkt: jkt }: z.output<typeof CHALLENGE_FORM>,
  ): Promise<{ readonly state: string; readonly publicKey: RequestOptionsJSON }> {
    const client = await this.oidcProvider.provider.Client.find(clientId);
    if (!client) throw new DomainError('invalid_client', 'There is no such client.');
    if (!client.grantTypeAllowed(FIDO2_GRANT)) {
      throw new DomainError('unauthorized_client', 'This client is not registered for this grant.');
    }
    const { state, challenge } = await this.fido2Grant.createChallenge(clientId, jkt);
    const options = { challenge, userVerification: 'required' } as const;
    return { state, publicKey: this.webAuthnCeremonies.requestOptions(options) };
  }
}
