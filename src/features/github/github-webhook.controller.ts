import { hash } from 'node:crypto';
import { Body, Controller, Headers, HttpCode, Post } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { GitHubApp } from '#domain/github/app/github-app.service.js';
import { GitHubLinks } from '#domain/github/links/github-links.service.js';
import { isSignedBy } from '#domain/github/links/signature.js';
import { webhookEvent } from '#domain/github/links/webhook-event.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { isUuid } from '#platform/text/single-line.js';

/** Matches the ids of deliveries. GitHub sends UUIDs today. */
const DELIVERY = /^[ -~]{1,128}$/;

/**
 * `POST /api/webhooks/github`: receives the events of the GitHub App. The request has no session or
 * token: the signature over the raw body is the only proof that GitHub sent it.
 */
@Controller('api/webhooks/github')
@Route({
  tier: 'general',
  body: { kind: 'raw', max: 1024 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: PUBLIC,
  protectedResource: false,
})
export class GitHubWebhookController {
  constructor(
    private readonly app: GitHubApp,
    private readonly links: GitHubLinks,
  ) {}

  @Post()
  @Route({
    operation: 'receiveGitHubEvent',
    summary: 'Takes an event of the GitHub App',
    answers: { 204: null },
    refusals: ['invalid_signature', 'github_not_configured', 'unavailable', 'internal'],
    asks: {
      body: z.looseObject({}).describe('The event as GitHub sends it.'),
      headers: {
        'x-hub-signature-256': 'The HMAC-SHA256 of the body.',
        'x-github-delivery': 'The id of the delivery.',
        'x-github-event': 'The kind of the event.',
      },
    },
  })
  @HttpCode(204)
  async receive(
    @Body() body: Buffer | undefined,
    @Headers() headers: Readonly<Record<string, string | undefined>>,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    const { webhookSecret } = this.app.settings;
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    if (!isSignedBy(webhookSecret, bytes, headers['x-hub-signature-256'])) {
      throw new DomainError('invalid_signature', 'X-Hub-Signature-256 does not fit the body.');
    }
    const deliveryId = deliveryIdOf(headers['x-github-delivery'] ?? '');
    const event = webhookEvent(headers['x-github-event'] ?? '', bytes);
    if (event.kind !== 'ignored') await this.links.apply(deliveryId, event, origin);
  }
}

/**
 * Returns the UUID under which a delivery is recorded. It is the id of the delivery itself if that
 * is a UUID. Otherwise it is made of the SHA-256 of the id (UUIDv8, RFC 9562 §5.8), so that a
 * delivery that comes again has the same UUID.
 *
 * @throws DomainError invalid_request for a text that is no id of a delivery
 */
function deliveryIdOf(text: string): string {
  if (!DELIVERY.test(text)) {
    throw new DomainError('invalid_request', 'X-GitHub-Delivery must be the id of a delivery.');
  }
  if (isUuid(text)) return text;
  const bytes = hash('sha256', text, 'buffer');
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6); // version 8
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8); // the variant of RFC 9562
  return bytes
    .toString('hex', 0, 16)
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
