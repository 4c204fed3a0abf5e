import { Body, Controller, Delete, Get, Param, Patch, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { USER_ACCESS, USER_ACCESS_BY_TOUCH } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { SecurityKeys } from '#domain/sign-in/key-authentication/security-keys.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { KEY_JSON, keyJson, KEYS_JSON, type KeyJson } from './key-json.js';
import { KEY_ID, RENAME, type Rename } from './webauthn.schemas.js';

/** The answer to the removal of a key. */
const REMOVED_JSON = z
  .object({
    sessions_revoked: z.int().describe('The sessions that were opened with the key.'),
    current_session_revoked: z.boolean().describe('True if the session of the request is one.'),
  })
  .describe('What ended with the key.');

/**
 * Lists, renames and removes the security keys of the user. The id of another user's key gets 404.
 */
@Controller('v1/keys')
@Route({
  tier: 'general',
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS,
})
export class KeysController {
  constructor(
    private readonly keys: SecurityKeys,
    private readonly cookies: SessionCookies,
  ) {}

  @Get()
  @Route({
    operation: 'listKeys',
    summary: 'Lists the security keys of the user',
    answers: { 200: KEYS_JSON },
  })
  async list(@Caller() session: VerifiedSession): Promise<{ keys: KeyJson[] }> {
    const keys = await this.keys.list(session.user.id);
    return { keys: keys.map((key) => keyJson(key, session.authenticatorId)) };
  }

  @Patch(':id')
  @Route({
    operation: 'renameKey',
    summary: 'Renames a security key',
    answers: { 200: KEY_JSON },
    refusals: ['not_found', 'account_inactive'],
  })
  async rename(
    @Caller() session: VerifiedSession,
    @Param({ schema: KEY_ID }) { id }: { id: string },
    @Body({ schema: RENAME }) { name }: Rename,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<KeyJson> {
    const key = await this.keys.rename(session, id, name, origin);
    return keyJson(key, session.authenticatorId);
  }

  /**
   * Removes a key, and ends every session that was opened with it. If the session of this request
   * is one of them, the response also removes the session cookie.
   */
  @Delete(':id')
  @Route({
    operation: 'removeKey',
    summary: 'Removes a security key and ends what it opened',
    answers: { 200: REMOVED_JSON },
    refusals: ['not_found', 'last_key', 'account_inactive'],
    auth: USER_ACCESS_BY_TOUCH,
  })
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: KEY_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
    @Res({ passthrough: true }) response: Response,
  ): Promise<{ sessions_revoked: number; current_session_revoked: boolean }> {
    const sessionsRevoked = await this.keys.remove(session, id, origin);
    const isOwn = id.toLowerCase() === session.authenticatorId;
    if (isOwn) this.cookies.clear(response);
    return { sessions_revoked: sessionsRevoked, current_session_revoked: isOwn };
  }
}
