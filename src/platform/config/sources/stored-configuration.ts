import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, type LoadedConfig } from '#platform/config/load-config.js';
import {
  ObjectStoreError,
  type ObjectStoreFault,
} from '#platform/object-store/object-store-error.js';
import type { ObjectReader, StoredObject } from '#platform/object-store/s3-object.js';
import { readDocument, UnreadableDocument } from './document.js';
import { settingsOf, type DocumentSettings } from './document-settings.js';
import { loadMerged } from './merged-configuration.js';

/** A valid document over the environment. */
export interface StoredConfiguration {
  readonly loaded: LoadedConfig;
  readonly settings: DocumentSettings;
  /** The tag of the document; undefined where the store has none. */
  readonly etag: string | undefined;
}

/** The variable that a fault of the object store is about. */
const VARIABLE_OF: Readonly<Record<ObjectStoreFault, string>> = {
  'no-bucket': 'BUCKET',
  'no-object': 'KEY',
  denied: 'BUCKET',
  'no-credentials': 'BUCKET',
  'wrong-region': 'REGION',
  'too-large': 'KEY',
  slow: 'BUCKET',
  unreachable: 'BUCKET',
  failed: 'BUCKET',
};

/**
 * Reads the document and validates it over the environment.
 *
 * @throws ConfigProblems for a document that cannot be read, or has a wrong setting
 */
export async function readStored(
  reader: ObjectReader,
  environment: Environment,
  signal?: AbortSignal,
): Promise<StoredConfiguration> {
  const object = await withVariable(() => reader.read(signal));
  return validated(object, environment);
}

/** Validates a document that was read. @throws ConfigProblems */
export function validated(
  { bytes, etag }: StoredObject,
  environment: Environment,
): StoredConfiguration {
  try {
    const settings = settingsOf(readDocument(bytes));
    return { loaded: loadMerged(environment, settings), settings, etag };
  } catch (error) {
    if (!(error instanceof UnreadableDocument)) throw error;
    throw new ConfigProblems([`SVC_S3_CONFIG_KEY: the document ${error.message}`]);
  }
}

/** Runs a request to the object store, and names the variable of a fault. @throws ConfigProblems */
export async function withVariable<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof ObjectStoreError)) throw error;
    throw new ConfigProblems([`SVC_S3_CONFIG_${VARIABLE_OF[error.fault]}: ${error.message}`]);
  }
}
