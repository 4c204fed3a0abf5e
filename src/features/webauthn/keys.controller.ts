import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { SecurityKeys } from '#domain/key-authentication/security-keys.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { keyJson, type KeyJson } from './key-json.js';
import { KEY_ID, RENAME, type Rename } from './webauthn.schemas.js';

/** Lists and renames the security keys of the user. A key of another user does not exist here: 404. */
@Controller('v1/keys')
@Route({
  tier: 'general',
  audience: 'api',
  errors: 'problem',
  auth: { session: 'verified', origin: 'own', scope: 'svc:credentials' },
})
export class KeysController {
  constructor(private readonly keys: SecurityKeys) {}

  @Get()
  @Route({ summary: 'Lists the security keys of the user' })
  async list(@Caller() session: VerifiedSession): Promise<{ keys: KeyJson[] }> {
    const keys = await this.keys.list(session.user.id);
    return { keys: keys.map((key) => keyJson(key, session.authenticatorId)) };
  }

  @Patch(':id')
  @Route({ summary: 'Renames a security key' })
  async rename(
    @Caller() session: VerifiedSession,
    @Param({ schema: KEY_ID }) { id }: { id: string },
    @Body({ schema: RENAME }) { name }: Rename,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<KeyJson> {
    const key = await this.keys.rename(session.user, id, name, origin);
    return keyJson(key, session.authenticatorId);
  }
}
