import type { FeedPlace } from './audit-feed.repository.js';

const FEED_PLACE = /^(\d{1,18}) (\d{1,19}) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Encodes a position in the feed of audit events as an opaque cursor. */
export function writeFeedCursor({ epoch, xid, id }: FeedPlace): string {
  return Buffer.from(`${epoch} ${xid} ${id}`).toString('base64url');
}

/**
 * Reads the position in the feed from a cursor; undefined for a text that is not a cursor of the
 * feed.
 */
export function readFeedCursor(cursor: string): FeedPlace | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, epoch, xid, id] = FEED_PLACE.exec(text) ?? [];
  return epoch !== undefined && xid !== undefined && id !== undefined
    ? { epoch, xid, id }
    : undefined;
}
