import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import type { TlsSource } from '#platform/tls/tls-material.js';
import type { LiveConfiguration } from './live-configuration.js';

/**
 * The injection token of the {@link LiveConfiguration}, which follows changes of the configuration
 * document. The value is null if no object store is configured.
 */
export const LIVE_CONFIGURATION = Symbol('LiveConfiguration');

/**
 * The injection token of the {@link CertificateHolder}, which serves the TLS certificate of a
 * changed configuration document.
 */
export const CERTIFICATE_HOLDER = Symbol('CertificateHolder');

/** The part of the HTTP listeners that replaces their TLS certificate. */
export interface CertificateHolder {
  /**
   * Serves new connections with another certificate and its private key.
   * @throws Error if the certificate or the key cannot be used
   */
  replaceCertificate(source: TlsSource): void;
}

/**
 * The largest fraction of the interval by which a wait is shortened. The fraction is random, so
 * that the replicas do not read the object store at the same moment.
 */
const JITTER = 0.2;

/**
 * Reads the configuration document in the object store every SVC_S3_CONFIG_POLL_INTERVAL seconds,
 * until the process stops. A read begins only after the previous one has ended.
 */
@Injectable()
export class ConfigurationPoll implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('object-store');
  readonly #stopping = new AbortController();
  #polling: Promise<void> | undefined;

  constructor(
    @Inject(LIVE_CONFIGURATION) private readonly live: LiveConfiguration | null,
    @Inject(CERTIFICATE_HOLDER) private readonly holder: CertificateHolder,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  onApplicationBootstrap(): void {
    if (this.live) this.#polling = this.#pollUntilStop(this.live);
  }

  /** Ends the wait or the read that is under way, and resolves when it has ended. */
  async stopWork(): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
  }

  async #pollUntilStop(live: LiveConfiguration): Promise<void> {
    const { signal } = this.#stopping;
    const effects = {
      log: this.#log,
      replaceCertificate: (source: TlsSource) => this.holder.replaceCertificate(source),
    };
    while (!signal.aborted) {
      const shortened = 1 - (JITTER * (this.random.bytes(1)[0] ?? 0)) / 255;
      try {
        await this.clock.sleep(live.pollSeconds * 1000 * shortened, { signal });
      } catch {
        return; // the process stops, which ended the wait
      }
      await live.look(effects, signal);
    }
  }
}
