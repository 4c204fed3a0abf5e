import type { Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { makeCertifiedKey } from './certificate.js';
import { CERTIFICATE_LIFETIME, planOf } from './key-schedule.js';
import { addSpKey, listSpKeys, resealSpKey, type StoredKey } from './sp-keys.repository.js';

const PURPOSE = 'saml service provider key';

/** The configuration and the database from which the keys come. */
export interface SpKeySources {
  readonly config: Pick<Config, 'http' | 'secrets'>;
  readonly dataSource: DataSource;
  readonly clock: Clock;
}

/** A stored key whose private part is decrypted. */
interface OpenedKey extends StoredKey {
  /** The private key, as PKCS#8 in PEM. */
  readonly privateKey: string;
}

/**
 * The keys with which this service signs SAML requests. The service makes them itself and stores
 * them encrypted, so that all replicas and restarts use the same ones. The time alone decides which
 * key signs, so that replicas need no coordination.
 */
export class SpKeys {
  private constructor(
    private readonly sources: SpKeySources,
    private keys: readonly OpenedKey[],
  ) {}

  /**
   * Loads the keys. If the database has none, the first one is made.
   *
   * @throws ConfigProblems if neither root secret decrypts a stored key
   */
  static async open(sources: SpKeySources): Promise<SpKeys> {
    return new SpKeys(sources, await currentKeys(sources));
  }

  /** Loads the keys again, and makes the next one if it is due. */
  async renew(): Promise<void> {
    this.keys = await currentKeys(this.sources);
  }

  /** Returns the private key that signs now, PKCS#8 in PEM. */
  signingKey(): string {
    const { signing } = this.#plan();
    const key = this.keys.find(({ number }) => number === signing);
    if (!key)
      throw new Error('no key of the SAML service provider is valid: the clock may be wrong');
    return key.privateKey;
  }

  /** Returns the certificates that the metadata of this service contains, DER in base64. */
  certificates(): string[] {
    const { published } = this.#plan();
    return this.keys
      .filter(({ number }) => published.includes(number))
      .map(({ certificate }) => certificate.toString('base64'));
  }

  #plan() {
    return planOf(this.keys.map(datesOf), this.sources.clock.milliseconds());
  }
}

async function currentKeys(sources: SpKeySources): Promise<OpenedKey[]> {
  const { manager } = sources.dataSource;
  let stored = await listSpKeys(manager);
  if (planOf(stored.map(datesOf), sources.clock.milliseconds()).isDue) {
    await addSpKey(manager, await newKey(sources, (stored.at(-1)?.number ?? 0) + 1));
    stored = await listSpKeys(manager);
  }
  const now = sources.clock.milliseconds();
  const valid = stored.filter(({ notAfter }) => notAfter.getTime() > now);
  return Promise.all(valid.map((key) => open(sources, key)));
}

async function newKey({ config, clock }: SpKeySources, number: number): Promise<StoredKey> {
  const madeAt = clock.now();
  madeAt.setMilliseconds(0); // a certificate has its times in whole seconds
  const notAfter = new Date(madeAt.getTime() + CERTIFICATE_LIFETIME);
  const name = `${new URL(config.http.baseUrl).hostname} SAML`;
  const made = await makeCertifiedKey({ name, notBefore: madeAt, notAfter });
  const sealed = await sealSecret(config.secrets, PURPOSE, made.privateKey);
  return { number, sealed, certificate: made.certificate, madeAt, notAfter };
}

/**
 * Decrypts a stored key. If only the previous root secret decrypts it, the key is encrypted again
 * under the present one.
 */
async function open({ config, dataSource }: SpKeySources, key: StoredKey): Promise<OpenedKey> {
  const opened = await openSecret(config.secrets, PURPOSE, key.sealed);
  if (opened === undefined) {
    throw new ConfigProblems([
      'SVC_JWT_SECRET: does not open the SAML key of this database; set the secret that sealed it as SVC_JWT_SECRET_PREVIOUS',
    ]);
  }
  if (opened.isOutdated) {
    const sealed = await sealSecret(config.secrets, PURPOSE, opened.text);
    await resealSpKey(dataSource.manager, key, sealed);
  }
  return { ...key, privateKey: opened.text };
}

function datesOf({ number, madeAt, notAfter }: StoredKey) {
  return { number, madeAt: madeAt.getTime(), notAfter: notAfter.getTime() };
}
