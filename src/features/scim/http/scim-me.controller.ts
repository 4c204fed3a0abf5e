import { Controller, Delete, Get, Patch, Post, Put } from '@nestjs/common';
import { DomainError } from '#platform/errors/domain-error.js';
import { Route } from '#platform/http/routing/route.js';
import { SCIM } from './resource-endpoint.js';

/**
 * `/scim/v2/Me`: refuses every method by 501 (RFC 7644 §3.11), because a SCIM token belongs to an
 * identity provider, and not to a user. No body is read.
 */
@Controller('scim/v2/Me')
@Route({
  ...SCIM,
  body: { ...SCIM.body, kind: 'none' },
  summary: 'Refuses: a SCIM token belongs to no user',
})
export class ScimMeController {
  @Get()
  show(): never {
    throw noUser();
  }

  @Post()
  create(): never {
    throw noUser();
  }

  @Put()
  replace(): never {
    throw noUser();
  }

  @Patch()
  patch(): never {
    throw noUser();
  }

  @Delete()
  remove(): never {
    throw noUser();
  }
}

function noUser(): DomainError {
  return new DomainError('not_implemented', 'A SCIM token belongs to no user.');
}
