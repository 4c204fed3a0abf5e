import { LOGOUT_QUEUE } from '../logout-notices/notice-queue.repository.js';
import { RECEIVER_QUEUES } from '../event-receivers/receiver-queue.repository.js';
import { SIGNAL_QUEUE } from '../shared-signals/event-queue.repository.js';
import type { NoticeQueue } from '../notice-figures/notice-figures.repository.js';

/** The queues of notices that the service sends to applications, each of one kind. */
export const NOTICE_QUEUES: readonly NoticeQueue[] = [LOGOUT_QUEUE, SIGNAL_QUEUE];

/**
 * The queues of notices to applications and of audit events to event receivers. The gauges for
 * operators are read from them.
 */
export const WATCHED_QUEUES: readonly NoticeQueue[] = [...NOTICE_QUEUES, ...RECEIVER_QUEUES];

/** Milliseconds after which a waiting notice is reported to the operator. */
export const WAITS_LONG = 15 * 60_000;
