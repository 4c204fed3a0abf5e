/** The samples of numbers that differ in each run, by the names of their JSON members. */
const NUMBERS: Readonly<Record<string, number>> = {
  auth_time: 1_768_472_700,
  client_id_issued_at: 1_768_472_700,
  exp: 1_768_473_000,
  iat: 1_768_472_700,
  size: 120,
  to: 120,
};

/** The JSON members whose texts differ in each run, even if a text does not look random. */
const OPAQUE = new Set([
  'after',
  'cursor',
  'epoch',
  'etag',
  'if-match',
  'if-none-match',
  'kid',
  'next',
  'nextCursor',
  'note',
  'request_uri',
  'revoked_serials',
  'serial',
  'user_code',
  'version',
  'x-hub-signature-256',
]);

/** The samples of texts whose form matters to clients, by the names of their JSON members. */
const FORMS: Readonly<Record<string, string>> = {
  serial: '1024',
  revoked_serials: '1023',
  epoch: '1',
  user_code: 'BCDF-GHJK',
  request_uri: 'urn:ietf:params:oauth:request_uri:sample',
  'if-match': '"sample-version"',
  'if-none-match': '"sample-version"',
};

/**
 * The JSON members with ids of WebAuthn, which are bytes in base64url. Such an id may have no digit
 * and look like words, so the name of the member decides.
 */
const IDS_OF_BYTES = new Set(['id', 'rawId']);
const BYTES = /^(?=.*[a-z])(?=.*[A-Z])[\w-]{20,}$/;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|\+00:00)$/;
const END = /expire|until|ends|before|signs_from/;
const LOOPBACK = /http:\/\/(?:127\.0\.0\.1|localhost):\d+/g;

/** Matches a time in a line of an allowed-signers file (ssh-keygen). */
const TIME_OF_SIGNERS = /(?<=valid-after=")\d{14}Z(?=")/g;

/** Matches the time at which `security.txt` expires (RFC 9116 §2.5.5). It changes each day. */
const TIME_OF_CONTACT = /(?<=^Expires: )[\dT:-]+Z$/gm;

/** Matches a parameter in the query of a URL. */
const IN_QUERY = /(?<=^https?:\/\/.*)([?&])([\w-]+)=([^&#]+)/g;
const TEST_ADDRESS = /^10\.\d+\.\d+\.\d+$/;

/**
 * Replaces the values that differ in each run (ids, times, secrets, URLs) by fixed samples. Equal
 * values get equal samples, so that an example shows which ids are the same.
 */
export class Samples {
  readonly #samples = new Map<string, string>();
  readonly #live = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  #ids = 0;
  #addresses = 0;

  /** Sets the sample of a live text, such as the URL of the service. */
  learn(live: string, sample: string): void {
    this.#samples.set(live, sample);
    this.#live.set(sample, live);
  }

  /**
   * Returns a copy of a value in which samples replace the live values.
   *
   * @param name the name of the JSON member that has the value
   */
  sampled(value: unknown, name = ''): unknown {
    if (Array.isArray(value)) return value.map((one) => this.sampled(one, name));
    if (typeof value === 'object' && value !== null) {
      const rows = Object.entries(value).map(([key, one]) => [
        this.#sampleOf(key, ''),
        this.sampled(one, key),
      ]);
      return Object.fromEntries(rows) as object;
    }
    if (typeof value === 'number') return this.#sampleNumber(value, name);
    return typeof value === 'string' ? this.#sampleOf(value, name) : value;
  }

  /** Returns a copy of a value in which the live values replace their samples. */
  live(value: unknown, name = ''): unknown {
    if (Array.isArray(value)) return value.map((one) => this.live(one, name));
    if (typeof value === 'object' && value !== null) {
      const rows = Object.entries(value).map(([key, one]) => [
        this.#liveOf(key),
        this.live(one, key),
      ]);
      return Object.fromEntries(rows) as object;
    }
    if (typeof value === 'number') return this.#numbers.get(name) ?? value;
    return typeof value === 'string' ? this.#liveOf(value) : value;
  }

  #sampleNumber(live: number, name: string): number {
    const sample = NUMBERS[name];
    if (sample === undefined) return live;
    this.#numbers.set(name, live);
    return sample;
  }

  #liveOf(text: string): string {
    const whole = this.#live.get(text);
    if (whole !== undefined) return whole;
    let result = text;
    for (const [sample, live] of this.#live) {
      if (sample.length > 8) result = result.replaceAll(sample, live);
    }
    return result;
  }

  #sampleOf(text: string, name: string): string {
    const known = this.#samples.get(text);
    if (known !== undefined) return known;
    const time = TIME.exec(text);
    if (time) return sampleTime(name, time[1] !== undefined);
    if (TEST_ADDRESS.test(text)) return '203.0.113.7';
    const isBytes = IDS_OF_BYTES.has(name) && BYTES.test(text);
    if (OPAQUE.has(name) || isBytes || looksRandom(text)) return this.#opaque(text, name);
    let result = text;
    for (const [live, sample] of this.#samples) {
      if (live.length > 8) result = result.replaceAll(live, sample);
    }
    return result
      .replaceAll(LOOPBACK, (address) => this.#addressOf(address))
      .replaceAll(UUID, (id) => this.#idOf(id))
      .replaceAll(TIME_OF_SIGNERS, '20260115093000Z')
      .replaceAll(TIME_OF_CONTACT, '2026-04-15T00:00:00Z')
      .replaceAll(IN_QUERY, (_, mark: string, key: string, value: string) => {
        const sample = this.#sampleOf(decodeURIComponent(value), key);
        return `${mark}${key}=${encodeURIComponent(sample)}`;
      });
  }

  /** Returns the sample of the URL of a stand-in, such as an identity provider. */
  #addressOf(address: string): string {
    this.#addresses += 1;
    const sample = `https://idp-${this.#addresses}.example`;
    this.learn(address, sample);
    return sample;
  }

  #idOf(id: string): string {
    if (this.#live.has(id)) return id; // the id is a sample value already
    const known = this.#samples.get(id);
    if (known !== undefined) return known;
    this.#ids += 1;
    const sample = `019b0000-0000-7000-8000-${String(this.#ids).padStart(12, '0')}`;
    this.learn(id, sample);
    return sample;
  }

  /**
   * Returns the sample of a text that has a meaning only to the service, such as a secret or a
   * cursor.
   */
  #opaque(text: string, name: string): string {
    if (new RegExp(`^${UUID.source}$`).test(text)) return this.#idOf(text);
    const form = FORMS[name];
    const base = `sample-${name.replaceAll(/[^a-zA-Z]+/g, '-')}`;
    let sample = form ?? base;
    for (let n = 2; this.#live.has(sample); n += 1) sample = `${form ?? base}-${n}`;
    this.learn(text, sample);
    return sample;
  }
}

function sampleTime(name: string, hasFraction: boolean): string {
  const day = END.test(name) ? '2026-04-15' : '2026-01-15';
  return `${day}T09:30:00${hasFraction ? '.000' : ''}Z`;
}

/** Returns true for a text that looks random, as tokens and keys do. */
function looksRandom(text: string): boolean {
  if (/^(?:ssh-\S+ AAAA|SHA256:|eyJ)/.test(text)) return true;
  return /^[A-Za-z0-9_+/=.:~-]{20,}$/.test(text) && !isWords(text);
}

/**
 * Returns true for a text that consists of words, such as a URN, an error code or a name in camel
 * case.
 */
function isWords(text: string): boolean {
  if (/^[a-z]*(?:[A-Z][a-z]+)+$/.test(text)) return true;
  if (/^(?:urn|https?|arn):/.test(text) || UUID.test(text)) {
    UUID.lastIndex = 0;
    return true;
  }
  UUID.lastIndex = 0;
  const isMixed = /[a-z]/.test(text) && /[A-Z]/.test(text); // a token may have no digit
  return !isMixed && !/^[0-9a-f]{20,}$/.test(text);
}
