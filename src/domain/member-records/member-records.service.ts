import { Injectable } from '@nestjs/common';
import type { Admin } from '#domain/directory/users.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import {
  listAdminEvents,
  readFigures,
  type AdminEvent,
  type MemberFigures,
} from './member-figures.repository.js';

/** The events on the overview. */
const EVENTS_SHOWN = 10;

/** Reads what the admins of an organization see of its members. */
@Injectable()
export class MemberRecords {
  constructor(private readonly work: TenantWork) {}

  /** Returns the figures and the latest administrative events of an organization. */
  async overview({
    orgId,
  }: Admin): Promise<{ readonly figures: MemberFigures; readonly events: readonly AdminEvent[] }> {
    return this.work.costly(orgId, async (tx) => ({
      figures: await readFigures(tx, orgId),
      events: await listAdminEvents(tx, orgId, EVENTS_SHOWN),
    }));
  }
}
