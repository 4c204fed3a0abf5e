import type { LoggerService } from '@nestjs/common';
import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import type { ObjectReader } from '#platform/object-store/s3-object.js';
import type { TlsSource } from '#platform/tls/tls-material.js';
import type { DocumentSettings } from './document-settings.js';
import { validated, withVariable, type StoredConfiguration } from './stored-configuration.js';

/** The log and the listeners that a look at the document may act on. */
export interface LiveEffects {
  readonly log: Pick<LoggerService, 'log' | 'warn' | 'error'>;
  /** Gives the listeners another certificate and key. @throws Error if they cannot be used */
  replaceCertificate(source: TlsSource): void;
}

/**
 * Compares the document of the object store with the configuration that runs. A look applies a
 * changed certificate at once, and logs that any other change needs a restart. A document that
 * cannot be read or is wrong changes nothing.
 */
export class LiveConfiguration {
  /** The tag of the document that was examined last. */
  #etag: string | undefined;
  /** The problems of the document that was examined last; undefined if it had none. */
  #refusal: ConfigProblems | undefined;
  #tls: TlsSource | undefined;
  /** The changes that were reported last, as text. */
  #reported = '';
  /** The problems since the last look without one, because each problem is logged once. */
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
   * Looks at the document once. Never rejects: a failure is logged once, and so is the first
   * success after it.
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
   * Reads the document, and applies it. It keeps the tag of this read and not that of the HEAD
   * request, because the document may have changed between the two.
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

  /** Logs the keys that need a restart, once for each change. */
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
 * Returns the keys whose settings differ, each with its new settings as text, in their alphabetical
 * order.
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
