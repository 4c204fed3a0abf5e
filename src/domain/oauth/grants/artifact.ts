import { hash } from 'node:crypto';
import type { LiveGrant } from './live-grant.js';

/**
 * An object of the OAuth library, such as a code or a token, with the fields that the database
 * indexes.
 */
export interface Artifact {
  /** The library's name of the model: `AccessToken`, `AuthorizationCode`, … */
  readonly model: string;
  /**
   * The hash ({@link artifactId}) of the library's id, because that id of a code or a token is the
   * secret itself.
   */
  readonly id: Buffer;
  readonly payload: object;
  readonly grantId: Buffer | null;
  readonly clientId: string | null;
  readonly userId: string | null;
  readonly userCode: string | null;
  /** The resource that a token is for (RFC 8707 §2). */
  readonly audience?: string;
  /** The lifetime in seconds from now. */
  readonly expiresIn: number;
}

/** An artifact as it is read. */
export interface StoredArtifact {
  readonly payload: Record<string, unknown>;
  /**
   * The time of its consumption in seconds of the epoch; undefined for an artifact that was not
   * consumed.
   */
  readonly consumed: number | undefined;
  /** The seconds since its consumption, by the clock of the database. */
  readonly consumedAgo: number | undefined;
  /** The grant of the artifact, if its resource owner may still be issued tokens. */
  readonly grant: LiveGrant | undefined;
}

/**
 * Hashes an id of the library to the key of its row, so that a reader of the table learns no code
 * and no token.
 */
export function artifactId(libraryId: string): Buffer {
  return hash('sha256', libraryId, 'buffer');
}
