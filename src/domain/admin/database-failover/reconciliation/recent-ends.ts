import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { CommittedActs } from '#domain/audit/noted-act.js';
import { Clock } from '#platform/clock/clock.js';

/** The time for which a process remembers an act, in milliseconds. */
const REMEMBERED = 3_600_000;

/** The most acts that a process remembers, so that its memory stays bounded. */
const MOST = 100_000;

/** Milliseconds between two warnings that acts were forgotten too early. */
const WARN_EVERY = 60_000;

/**
 * The acts of one audit event, such as the removal of a user, that this process committed, and the
 * time at which the commit returned.
 */
export interface RecentEnd extends CommittedActs {
  readonly at: Date;
}

interface Remembered extends RecentEnd {
  /** The time at which the commit returned, in milliseconds of the monotonic clock. */
  readonly notedAt: number;
}

/**
 * Remembers the acts of the last hour by which this process changed access, such as the removal of
 * a user. If a database server lost their commits, only this memory still has the acts. The service
 * then repeats those that ended or reduced access.
 */
@Injectable()
export class RecentEnds implements OnModuleInit {
  readonly #security = new Logger('security');
  /**
   * The remembered acts, the oldest first. The key is a number that rises by one with each audit
   * event.
   */
  readonly #remembered = new Map<number, Remembered>();
  #next = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly auditLog: AuditLog,
  ) {}

  onModuleInit(): void {
    this.auditLog.onCommittedActs((committed) => this.note(committed));
  }

  /** Remembers the acts of an audit event after their transaction has committed. */
  note(committed: CommittedActs): void {
    const now = this.clock.monotonic();
    this.#forgetBefore(now - REMEMBERED);
    for (const act of committed.acts) {
      if (act.kind === 'user_activated') this.#forgetDeactivation(act.userId);
    }
    const entry = { ...committed, at: this.clock.now(), notedAt: now };
    this.#remembered.set((this.#next += 1), entry);
    if (this.#remembered.size > MOST) this.#forgetOldest(now);
  }

  /** Returns the remembered acts of the last hour, the oldest first. */
  recent(): readonly RecentEnd[] {
    this.#forgetBefore(this.clock.monotonic() - REMEMBERED);
    return [...this.#remembered.values()];
  }

  #forgetBefore(limit: number): void {
    for (const [key, { notedAt }] of this.#remembered) {
      if (notedAt >= limit) return;
      this.#remembered.delete(key);
    }
  }

  #forgetDeactivation(userId: string): void {
    for (const [key, { acts }] of this.#remembered) {
      const [act] = acts;
      if (act?.kind === 'user_deactivated' && act.userId === userId) this.#remembered.delete(key);
    }
  }

  #forgetOldest(now: number): void {
    for (const key of this.#remembered.keys()) {
      this.#remembered.delete(key);
      break;
    }
    if (now - this.#warnedAt < WARN_EVERY) return;
    this.#warnedAt = now;
    this.#security.warn(
      `More than ${MOST} ends of access within an hour: the oldest are not done again if the database loses them`,
    );
  }
}
