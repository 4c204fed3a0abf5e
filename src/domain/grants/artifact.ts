import { hash } from 'node:crypto';
import type { LiveGrant } from './live-grant.js';

/** What the OAuth library keeps under one of its ids, and what we index of it. */
export interface Artifact {
  /** The library's name of the model: `AccessToken`, `AuthorizationCode`, … */
  readonly model: string;
  /** {@link artifactId} of the library's id, which for codes and tokens is the secret itself. */
  readonly id: Buffer;
  readonly payload: object;
  readonly grantId: Buffer | null;
  readonly clientId: string | null;
  readonly userId: string | null;
  readonly userCode: string | null;
  /** Seconds from now. */
  readonly expiresIn: number;
}

/** What is found again. */
export interface StoredArtifact {
  readonly payload: Record<string, unknown>;
  /** When it was consumed, if it was: seconds of the epoch. */
  readonly consumed: number | undefined;
  /** How long ago that was, in seconds, by the clock of the database, which set the time. */
  readonly consumedAgo: number | undefined;
  /** The grant that it hangs on, if it hangs on one whose holder may be issued something. */
  readonly grant: LiveGrant | undefined;
}

/** The key of a row: whoever reads the table learns no code and no token. */
export function artifactId(libraryId: string): Buffer {
  return hash('sha256', libraryId, 'buffer');
}
