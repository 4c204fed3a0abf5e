import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  type PublishedRevocations,
  Revocations,
} from '#domain/ssh-certificates/revocations.service.js';
import { Public } from '#platform/http/access/access.js';
import { entityTag, namesTag } from '#platform/http/entity-tag.js';
import {
  type RevocationJson,
  type RevocationListJson,
  SERIAL,
  type SerialParameter,
} from './ssh-ca.schemas.js';

/** `GET /v1/credentials/ssh/krl`: the file that sshd's `RevokedKeys` reads, or JSON when asked for; and one serial of it. */
@Controller('v1/credentials/ssh/krl')
@Public()
export class RevocationListController {
  constructor(private readonly revocations: Revocations) {}

  @Get()
  async read(@Req() request: Request, @Res() response: Response): Promise<void> {
    const list = await this.revocations.list();
    const type = request.accepts(['bin', 'json']) === 'json' ? 'json' : 'bin';
    const body = type === 'json' ? JSON.stringify(listJson(list)) : this.revocations.encode(list);
    const tag = entityTag(body);
    response.vary('Accept').setHeader('ETag', tag);
    if (namesTag(request.get('if-none-match'), tag)) {
      response.status(304).end();
      return;
    }
    response.type(type).send(body);
  }

  @Get(':serial')
  async check(@Param({ schema: SERIAL }) { serial }: SerialParameter): Promise<RevocationJson> {
    const checkedAt = new Date();
    const revoked = await this.revocations.isRevoked(serial);
    return { serial: serial.toString(), revoked, checked_at: checkedAt.toISOString() };
  }
}

function listJson({ serials, generatedAt }: PublishedRevocations): RevocationListJson {
  return {
    revoked_serials: serials.map(String),
    total: serials.length,
    generated_at: generatedAt.toISOString(),
  };
}
