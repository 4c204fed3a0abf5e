import { Body, Controller, Inject, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { equalInConstantTime } from '#platform/crypto/constant-time.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Public } from '#platform/http/access/access.js';
import { bearerSecret } from '#platform/http/access/bearer-secret.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { CERTIFICATION_TOKEN } from './certification-token.js';
import { CERTIFICATION_FORM, type CertificationForm } from './certification.schemas.js';

/** `POST /certification/complete-login` and `/certification/deny-login`, for whoever presents the test token. */
@Controller('certification')
@Public()
@BodyType('form')
export class CertificationController {
  constructor(@Inject(CERTIFICATION_TOKEN) private readonly token: string) {}

  /** Ends the login of a pending authorization as its synthetic person. */
  @Post('complete-login')
  completeLogin(
    @Req() request: Request,
    @Body({ schema: CERTIFICATION_FORM }) form: CertificationForm,
  ): never {
    this.#admit(request, form);
    throw nothingPending();
  }

  /** Ends the login of a pending authorization as refused. */
  @Post('deny-login')
  denyLogin(
    @Req() request: Request,
    @Body({ schema: CERTIFICATION_FORM }) form: CertificationForm,
  ): never {
    this.#admit(request, form);
    throw nothingPending();
  }

  /** @throws DomainError unauthenticated unless the token came as Bearer or in the form */
  #admit(request: Request, form: CertificationForm): void {
    const presented = bearerSecret(request) ?? form?.token;
    if (presented === undefined || !equalInConstantTime(presented, this.token)) {
      throw new DomainError('unauthenticated', 'Present the certification test token.');
    }
  }
}

/** No authorization can be under way: this version has no authorization endpoint. */
function nothingPending(): DomainError {
  return new DomainError('invalid_request', 'No authorization is waiting for a login.');
}
