import { hash } from 'node:crypto';

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

/** What is found again: the payload, and when it was consumed, if it was (seconds of the epoch). */
export interface StoredArtifact {
  readonly payload: Record<string, unknown>;
  readonly consumed: number | undefined;
}

/** The key of a row: whoever reads the table learns no code and no token. */
export function artifactId(libraryId: string): Buffer {
  return hash('sha256', libraryId, 'buffer');
}
