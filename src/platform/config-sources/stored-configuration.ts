import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import {
  ObjectStoreError,
  type ObjectStoreFault,
} from '#platform/object-store/object-store-error.js';
import type { ObjectReader, StoredObject } from '#platform/object-store/s3-object.js';
import { readJsonObject, UnreadableObject } from '#platform/text/json-object.js';
import { DocumentSettings, FROM_STORE } from './document-settings.js';

/**
 * A valid configuration that was made from a document and the environment. The settings of the
 * document alone are kept too, because they are compared with those of a later document.
 */
export interface StoredConfiguration {
  readonly loaded: LoadedConfig;
  readonly settings: DocumentSettings;
  /** The entity tag of the document; undefined if the object store sends none. */
  readonly etag: string | undefined;
  /** The document as it was read, from which a worker process makes the same configuration. */
  readonly object: StoredObject;
}

/**
 * The variable that an operator has to correct after a fault of the object store, without its
 * prefix `SVC_S3_CONFIG_`. After a fault that is not listed here, it is `SVC_S3_CONFIG_BUCKET`.
 */
const VARIABLE_OF: Readonly<Partial<Record<ObjectStoreFault, string>>> = {
  'no-object': 'KEY',
  'wrong-region': 'REGION',
  'too-large': 'KEY',
};

/**
 * Reads the document of the object store and validates it together with the environment.
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

/**
 * Validates a document that was read, together with the environment.
 * @throws ConfigProblems for a document that is no JSON object of version 1, or has a wrong setting
 */
export function validated(object: StoredObject, environment: Environment): StoredConfiguration {
  const { bytes, etag } = object;
  try {
    const { version, ...document } = readJsonObject(bytes);
    if (version !== 1) throw new UnreadableObject('must have "version": 1');
    const settings = new DocumentSettings(document);
    return { loaded: loadMerged(environment, settings), settings, etag, object };
  } catch (error) {
    if (!(error instanceof UnreadableObject)) throw error;
    throw new ConfigProblems([`SVC_S3_CONFIG_KEY: the document ${error.message}`]);
  }
}

/**
 * Sends a request to the object store. A fault becomes a problem that names the variable to
 * correct.
 * @throws ConfigProblems if the object store refuses the request or cannot be reached
 */
export async function withVariable<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof ObjectStoreError)) throw error;
    throw new ConfigProblems([
      `SVC_S3_CONFIG_${VARIABLE_OF[error.fault] ?? 'BUCKET'}: ${error.message}`,
    ]);
  }
}

/**
 * Validates a document together with the environment, by the same rules as the environment alone. A
 * problem or warning about a setting of the document names the key of the document.
 * @throws ConfigProblems with every problem at once
 */
function loadMerged(environment: Environment, document: DocumentSettings): LoadedConfig {
  const { problems, keys } = document;
  try {
    const { config, warnings } = loadConfig(overlay(environment, document));
    if (problems.length > 0) throw new ConfigProblems([]);
    return {
      config,
      warnings: [...document.warnings, ...warnings.map((line) => named(line, keys))],
    };
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    const reported = problems.map((line) => line.slice(0, line.indexOf(': ', FROM_STORE.length)));
    const others = error.problems
      .map((line) => named(line, keys))
      .filter((line) => !reported.some((start) => line.startsWith(`${start}: `)));
    throw new ConfigProblems([...problems, ...others]);
  }
}

/**
 * Replaces settings of the environment by those of the document. If the document has providers, all
 * providers of the environment are left out.
 */
function overlay(environment: Environment, document: DocumentSettings): Environment {
  const kept = Object.entries(environment).filter(
    ([name]) => !(document.hasProviders && /^SVC_IDP(?:S$|_)/.test(name)),
  );
  const set = Object.entries(document.variables).filter(([, value]) => value !== '');
  return Object.fromEntries([...kept, ...set]);
}

/**
 * Replaces the variable that begins a problem or a warning by the key of the document, if the
 * setting came from the document.
 */
function named(line: string, keys: ReadonlyMap<string, string>): string {
  const variable = line.slice(0, line.indexOf(': '));
  if (!keys.has(variable)) return line;
  return FROM_STORE + line.replaceAll(/\b[A-Z][A-Z0-9_]+\b/g, (name) => keys.get(name) ?? name);
}
