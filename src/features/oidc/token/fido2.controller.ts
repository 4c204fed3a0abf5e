import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { Fido2Challenges } from './fido2-challenges.service.js';
import { CHALLENGE, type Challenge } from './fido2.schemas.js';

/** `POST /oauth/fido2/challenge`: what a security key signs for the FIDO2 grant at the token endpoint. */
@Controller('oauth/fido2/challenge')
@Route({
  tier: 'authentication',
  body: { kind: 'form' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class Fido2Controller {
  constructor(private readonly challenges: Fido2Challenges) {}

  @Post()
  @Route({ summary: 'Issues a challenge for the FIDO2 grant' })
  @HttpCode(200)
  issue(@Body({ schema: CHALLENGE }) body: Challenge) {
    return this.challenges.issue(body);
  }
}
