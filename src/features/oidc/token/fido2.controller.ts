import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { Fido2Challenges } from './fido2-challenges.service.js';
import { CHALLENGE, type Challenge } from './fido2.schemas.js';

/** `POST /oauth/fido2/challenge`: what a security key signs for the FIDO2 grant at the token endpoint. */
@Controller('oauth/fido2/challenge')
@Public()
@BodyType('form')
export class Fido2Controller {
  constructor(private readonly challenges: Fido2Challenges) {}

  @Post()
  @HttpCode(200)
  issue(@Body({ schema: CHALLENGE }) body: Challenge) {
    return this.challenges.issue(body);
  }
}
