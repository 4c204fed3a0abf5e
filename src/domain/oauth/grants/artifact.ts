import { hash } from 'node:crypto';
import type { LiveGrant } from './live-grant.js';

/**
 * An artifact of the OAuth library (a code, token or similar object), with the fields that the
 * database indexes.
 */
export interface Artifact {
  /** The name of the artifact's kind in the OAuth library: `AccessToken`, `AuthorizationCode`, … */
  readonly model: string;
  /**
   * The hash ({@link artifactId}) of the library's id. The id itself is not stored, because the id
   * of a code or a token is the secret.
   */
  readonly id: Buffer;
  readonly payload: object;
  readonly grantId: Buffer | null;
  readonly clientId: string | null;
  readonly userId: string | null;
  readonly userCode: string | null;
  /**
   * The resource for which the token is issued (RFC 8707 §2); undefined if the artifact is not for
   * a resource.
   */
  readonly audience?: string;
  /** The lifetime of the artifact, in seconds from the time of the write. */
  readonly expiresIn: number;
}

/** An artifact of the OAuth library as it is read from the database. */
export interface StoredArtifact {
  readonly payload: Record<string, unknown>;
  /**
   * The time at which the artifact was consumed (used once), in seconds since 1970; undefined if it
   * was not.
   */
  readonly consumed: number | undefined;
  /**
   * The seconds since the artifact was consumed, by the clock of the database; undefined if it was
   * not.
   */
  readonly consumedAgo: number | undefined;
  /**
   * The grant of the artifact. It is undefined if the artifact has no grant, or if tokens may no
   * longer be issued to the resource owner.
   */
  readonly grant: LiveGrant | undefined;
}

/**
 * Returns the hash of an id of the OAuth library, which is the key of the row. Because only the
 * hash is stored, a reader of the table learns no code and no token.
 */
export function artifactId(libraryId: string): Buffer {
  return hash('sha256', libraryId, 'buffer');
}
