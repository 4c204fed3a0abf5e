import { EventEmitter } from 'node:events';
import type { Request, Response } from 'express';
import { expect, it } from 'vitest';
import type { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { answerAudit } from '../../../src/features/audit-log/audit-answer.js';

it('ends the search in the feed if the client closes the connection', async () => {
  const response = Object.assign(new EventEmitter(), { vary() {} });
  const request = { accepts: () => false };
  let isCancelled: (() => boolean) | undefined;
  const auditEvents: Pick<AuditEvents, 'feedLines'> = {
    feedLines: (_reader, _query, signal) => {
      isCancelled = () => signal?.aborted === true;
      return Promise.resolve({ batches: (async function* () {})(), next: undefined });
    },
  };
  await answerAudit(
    auditEvents as AuditEvents,
    { orgId: 'o', apiTokenId: 't' },
    {
      asked: { order: 'asc', format: 'ndjson' } as never,
      request: request as unknown as Request,
      response: response as unknown as Response,
    },
  );
  expect(isCancelled?.()).toBe(false);
  response.emit('close');
  expect(isCancelled?.()).toBe(true);
});
