import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  AuditEventsRepository,
  type AuditFilter,
  type AuditPlace,
  type AuditRow,
} from '#domain/audit/audit-events.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { writeCursor } from './audit-cursor.js';
import { USUAL_PAGE, type AuditQuery } from './audit-log.schemas.js';

/** The number of events that one statement reads for the whole log. */
const BATCH = 500;

/** A page of events; `next` is the cursor of the following page. */
export interface AuditPage {
  readonly events: readonly AuditRow[];
  readonly next: string | null;
}

/** Reads the audit log of an organization for its admins, the newest events first. */
@Injectable()
export class AuditEvents {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly auditEventsRepository: AuditEventsRepository,
  ) {}

  /** Returns one page of the matching events. @throws DomainError admin_required */
  async page(admin: Admin, { filter, after, limit = USUAL_PAGE }: AuditQuery): Promise<AuditPage> {
    const found = await this.#read(admin, filter, { after, limit: limit + 1 });
    const events = found.slice(0, limit);
    const last = events.at(-1);
    return { events, next: found.length > limit && last ? writeCursor(last.place) : null };
  }

  /**
   * Reads all matching events in batches. A batch is read after the client has taken the previous batch, so that one batch at
   * most is in memory.
   *
   * @returns the batches; the first is read already, so that its error still gets a status code
   */
  async batches(admin: Admin, query: AuditQuery): Promise<AsyncGenerator<readonly AuditRow[]>> {
    const first = await this.#batch(admin, query);
    return this.#from(first, admin, query);
  }

  async *#from(
    first: readonly AuditRow[],
    admin: Admin,
    query: AuditQuery,
  ): AsyncGenerator<readonly AuditRow[]> {
    let batch = first;
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    for (;;) {
      if (batch.length > 0) yield batch;
      left -= batch.length;
      const last = batch.at(-1);
      if (!last || batch.length < BATCH || left <= 0) return;
      const next = { ...query, after: last.place, limit: left };
      batch = await this.#batch(admin, next, PATIENCE_DURING_RESPONSE);
    }
  }

  #batch(
    admin: Admin,
    { filter, after, limit }: AuditQuery,
    patience?: number,
  ): Promise<AuditRow[]> {
    return this.#read(admin, filter, { after, limit: Math.min(BATCH, limit ?? BATCH) }, patience);
  }

  /** Every read checks again that the reader is an admin. @throws DomainError admin_required */
  #read(
    admin: Admin,
    filter: AuditFilter,
    place: { readonly after: AuditPlace | undefined; readonly limit: number },
    patience?: number,
  ): Promise<AuditRow[]> {
    const read = async (tx: EntityManager) => {
      await this.members.checkAdmin(tx, admin);
      return this.auditEventsRepository.list(tx, admin.orgId, filter, place);
    };
    return this.work.costly(admin.orgId, read, patience);
  }
}
