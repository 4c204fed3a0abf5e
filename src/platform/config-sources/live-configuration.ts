import type { LoggerService } from '@nestjs/common';
import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import type { ObjectReader } from '#platform/object-store/s3-object.js';
import type { TlsSource } from '#platform/tls/tls-material.js';
import type { DocumentSettings } from './document-settings.js';
import { validated, withVariable, type StoredConfiguration } from './stored-configuration.js';

/**
 * The effects that a read of the configuration document can have: log lines, and a new certificate.
 */
export interface LiveEffects {
  readonly log: Pick<LoggerService, 'log' | 'warn' | 'error'>;
  /**
   * Gives the HTTP listeners another certificate and its private key.
   * @throws Error if the certificate or the key cannot be used
   */
  replaceCertificate(source: TlsSource): void;
}

/**
 * Compares the configuration document in the object store with the configuration that the process
 * runs with. {@link look} applies a changed TLS certificate at once, and logs that any other change
 * needs a restart. A document that has problems or cannot be read changes nothing.
 */
export class LiveConfiguration {
  /**
   * The entity tag of the document that was examined last, so that an unchanged document is not
   * read again.
   */
  #etag: string | undefined;
  /** The problems of the document that was examined last; undefined if it had none. */
  #refusal: ConfigProblems | undefined;
  #tls: TlsSource | undefined;
  /** The changes that were logged last, as text, so that the same changes are not logged again. */
  #reported = '';
  /**
   * The problems of the configuration document that were logged since it was last valid, so that
   * each is logged once.
   */
  readonly #problems = new Set<string>();
  readonly #warnings: Set<string>;

  constructor(
    private readonly reader: ObjectReader,
    private readonly environment: Environment,
    private readonly running: StoredConfiguration,
    readonly pollSeconds: number,
  ) {
    this.#etag = running.etag;
    this.#tls = running.loaded.config.http.tls;
    this.#warnings = new Set(running.settings.warnings);
  }

  /**
   * Examines the configuration document once. It never rejects: a failure is logged once, and so is
   * the first success after a failure.
   */
  async look(effects: LiveEffects, signal?: AbortSignal): Promise<void> {
    try {
      await this.#look(effects, signal);
    } catch (error) {
      if (signal?.aborted) return;
      this.#report(error, effects);
      return;
    }
    if (this.#problems.size === 0) return;
    this.#problems.clear();
    effects.log.log('the configuration document is read again, and is valid');
  }

  async #look(effects: LiveEffects, signal?: AbortSignal): Promise<void> {
    const etag = await withVariable(() => this.reader.etag(signal));
    if (etag === undefined || etag !== this.#etag) await this.#examine(effects, signal);
    if (this.#refusal) throw this.#refusal;
  }

  /**
   * Reads the document and applies it. It stores the entity tag of this read, and not that of the
   * earlier HEAD request that showed a change. Between the two requests, the document may have
   * changed again.
   */
  async #examine(effects: LiveEffects, signal?: AbortSignal): Promise<void> {
    const object = await withVariable(() => this.reader.read(signal));
    try {
      this.#apply(validated(object, this.environment), effects);
      this.#refusal = undefined;
    } catch (error) {
      if (!(error instanceof ConfigProblems)) throw error;
      this.#refusal = error;
    }
    this.#etag = object.etag;
  }

  #apply({ loaded, settings }: StoredConfiguration, effects: LiveEffects): void {
    const { tls } = loaded.config.http;
    const changed = changedKeys(this.running.settings, settings);
    if (tls && this.#tls) {
      changed.delete('tls');
      if (tls.cert !== this.#tls.cert || tls.key !== this.#tls.key) {
        effects.replaceCertificate(tls);
        this.#tls = tls;
      }
    }
    for (const warning of settings.warnings) {
      if (!this.#warnings.has(warning)) effects.log.warn(warning);
      this.#warnings.add(warning);
    }
    this.#tell(changed, effects);
  }

  /** Logs the keys whose change needs a restart, once for each change. */
  #tell(changed: ReadonlyMap<string, string>, { log }: LiveEffects): void {
    const report = JSON.stringify([...changed]);
    if (report === this.#reported) return;
    const isFirst = this.#reported === '';
    this.#reported = report;
    const keys = [...changed.keys()].join(', ');
    if (keys !== '') log.warn(`the configuration document changed; needs a restart: ${keys}`);
    else if (!isFirst) log.log('the configuration document is again the one that runs');
  }

  #report(error: unknown, { log }: LiveEffects): void {
    const problems = error instanceof ConfigProblems ? error.problems : [String(error)];
    for (const problem of problems) {
      if (this.#problems.has(problem)) continue;
      this.#problems.add(problem);
      log.error(`${problem}; the service keeps the configuration that runs`);
    }
  }
}

/**
 * Returns the keys of the document whose settings differ between two versions of it, each with its
 * new settings as text. The keys are in the alphabetical order of their variables.
 */
function changedKeys(before: DocumentSettings, after: DocumentSettings): Map<string, string> {
  const changed = new Map<string, string>();
  const names = Object.keys({ ...before.variables, ...after.variables }).toSorted();
  for (const name of names) {
    const value = after.variables[name];
    if (before.variables[name] === value) continue;
    const key = (after.keys.get(name) ?? before.keys.get(name) ?? name).split(/[.[]/)[0] ?? name;
    changed.set(key, `${changed.get(key) ?? ''}${name}=${value ?? ''}\n`);
  }
  return changed;
}
