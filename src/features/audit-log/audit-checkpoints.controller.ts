import { Controller, Get, Query } from '@nestjs/common';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  checkpointJson,
  CHECKPOINTS_JSON,
  CHECKPOINTS_QUERY,
  PROOF_JSON,
  PROOF_QUERY,
  type CheckpointsJson,
  type CheckpointsRequest,
  type ProofJson,
  type ProofRequest,
} from './audit-checkpoints.schemas.js';

/**
 * `/api/v1/org/audit-checkpoints`: the signed checkpoints of the audit log of the organization. A
 * checkpoint states the number and the hash of all events so far, so that a later change of the log
 * can be proven.
 */
@Controller('api/v1/org/audit-checkpoints')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class AuditCheckpointsController {
  constructor(private readonly auditEvents: AuditEvents) {}

  @Get()
  @Route({
    operation: 'listAuditCheckpoints',
    summary: 'Lists the checkpoints of the audit log of the organization',
    answers: { 200: CHECKPOINTS_JSON },
  })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: CHECKPOINTS_QUERY }) { after, limit }: CheckpointsRequest,
  ): Promise<CheckpointsJson> {
    const page = await this.auditEvents.checkpoints(adminOf(session), after, limit);
    const last = page.checkpoints.at(-1);
    return {
      checkpoints: page.checkpoints.map(checkpointJson),
      keys: [...page.keys],
      next: last ? `${last.epoch}.${last.size}` : null,
    };
  }

  @Get('proof')
  @Route({
    operation: 'proveAuditCheckpoint',
    summary: 'Proves that a checkpoint of the audit log extends an earlier one',
    answers: { 200: PROOF_JSON },
    refusals: ['not_found'],
  })
  async prove(
    @Caller() session: VerifiedSession,
    @Query({ schema: PROOF_QUERY }) { epoch, from, to }: ProofRequest,
  ): Promise<ProofJson> {
    const proof = await this.auditEvents.consistency(adminOf(session), epoch, [from, to]);
    return {
      hashes: proof.hashes.map((hash) => hash.toString('base64')),
      previous: proof.previous,
    };
  }
}
