import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  type PublishedRevocations,
  RevocationList,
} from '#domain/ssh/revocation-list/revocation-list.service.js';
import { Clock } from '#platform/clock/clock.js';
import { entityTag, namesTag } from '#platform/http/request/entity-tag.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import {
  REVOCATION_JSON,
  REVOCATION_LIST_JSON,
  type RevocationJson,
  type RevocationListJson,
  SERIAL,
  type SerialParameter,
} from './ssh-ca.schemas.js';

type Form = 'bin' | 'json';

/** An encoded revocation list with its entity tag. */
interface Written {
  readonly body: Buffer;
  readonly tag: string;
}

/**
 * `GET /v1/credentials/ssh/krl`: serves the file of revoked SSH certificates that sshd reads
 * (`RevokedKeys`), or JSON for a client that prefers it. `/krl/{serial}` says if one serial is
 * revoked. `/krl/signatures` serves the file by which git refuses signatures.
 */
@Controller('v1/credentials/ssh/krl')
@Route({
  tier: 'general',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: PUBLIC,
})
export class RevocationListController {
  /**
   * The encodings of each revocation list. A list object never changes, so its encodings are reused
   * until another list replaces it.
   */
  readonly #written = new WeakMap<PublishedRevocations, Partial<Record<Form, Written>>>();

  constructor(
    private readonly revocationList: RevocationList,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Route({
    operation: 'getRevocationList',
    summary: 'The revocation list, for RevokedKeys of sshd or as JSON',
    answers: {
      200: { 'application/octet-stream': 'binary', 'application/json': REVOCATION_LIST_JSON },
      304: null,
    },
    refusals: ['unavailable'],
    asks: { headers: { 'if-none-match': 'The `ETag` of a list: 304 while it is the same.' } },
  })
  async read(@Req() request: Request, @Res() response: Response): Promise<void> {
    const list = await this.revocationList.list();
    const form = request.accepts(['bin', 'json']) === 'json' ? 'json' : 'bin';
    const { body, tag } = this.#write(list, form);
    response.vary('Accept').setHeader('ETag', tag);
    if (namesTag(request.get('if-none-match'), tag)) {
      response.status(304).end();
      return;
    }
    response.type(form).send(body);
  }

  @Get('signatures')
  @Route({
    operation: 'getRevokedSignatures',
    summary: 'The list of certificates whose signatures git refuses, which forgets none',
    answers: { 200: { 'application/octet-stream': 'binary' }, 304: null },
    refusals: ['unavailable'],
    asks: { headers: { 'if-none-match': 'The `ETag` of a list: 304 while it is the same.' } },
  })
  async signatures(@Req() request: Request, @Res() response: Response): Promise<void> {
    const { body, tag } = written(await this.revocationList.signatures());
    response.setHeader('ETag', tag);
    if (namesTag(request.get('if-none-match'), tag)) {
      response.status(304).end();
      return;
    }
    response.type('bin').send(body);
  }

  @Get(':serial')
  @Route({
    operation: 'checkRevocation',
    summary: 'Says whether a certificate is revoked',
    answers: { 200: REVOCATION_JSON },
    refusals: ['unavailable'],
  })
  async check(@Param({ schema: SERIAL }) { serial }: SerialParameter): Promise<RevocationJson> {
    const checkedAt = this.clock.now();
    const revoked = await this.revocationList.isRevoked(serial);
    return { serial: serial.toString(), revoked, checked_at: checkedAt.toISOString() };
  }

  #write(list: PublishedRevocations, form: Form): Written {
    const forms = this.#written.get(list) ?? {};
    this.#written.set(list, forms);
    return (forms[form] ??= written(
      form === 'json'
        ? Buffer.from(JSON.stringify(listJson(list)))
        : this.revocationList.encode(list),
    ));
  }
}

function written(body: Buffer): Written {
  return { body, tag: entityTag(body) };
}

function listJson({ authorities, ranges, generatedAt }: PublishedRevocations): RevocationListJson {
  const serials = authorities.flatMap((revoked) => Array.from(revoked.serials));
  if (authorities.length > 1) serials.sort((one, other) => one - other);
  return {
    revoked_serials: serials.map(String),
    revoked_ranges: Array.from(ranges.low, (first, index) => ({
      first: String(first),
      last: String(ranges.high[index]),
    })),
    total: serials.length,
    generated_at: generatedAt.toISOString(),
  };
}
