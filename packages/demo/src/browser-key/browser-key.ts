import type {
  CreateOptions,
  GetOptions,
  KeyAccount,
  KeyAssertion,
  KeyRegistration,
  SoftwareKey,
  SoftwareKeyState,
} from '@svc/stand-ins/software-key';

/** The largest number of accounts that a page offers for the login. */
const MOST_ACCOUNTS = 6;

/**
 * The error of a ceremony that the software key cannot do. The message is for the user of the page,
 * and the cause is the error of the software key.
 */
export class SoftwareKeyRefusal extends Error {}

/**
 * The one software key that all pages of the demo use. Its state is written after every use, so
 * that the key can log in after a restart of the demo.
 */
export class BrowserKey {
  constructor(
    private readonly key: SoftwareKey,
    private readonly origin: string,
    private readonly keep: (state: SoftwareKeyState) => void,
  ) {}

  /**
   * The accounts of the software key that the login page offers to a user without a session, the
   * newest first.
   */
  get accounts(): readonly KeyAccount[] {
    return this.key.accounts.slice(0, MOST_ACCOUNTS);
  }

  /**
   * Registers a credential.
   *
   * @throws SoftwareKeyRefusal if a browser's `navigator.credentials.create()` would reject
   */
  create(options: CreateOptions): KeyRegistration {
    return this.#use(() => this.key.create(options, this.origin));
  }

  /**
   * Signs an assertion.
   *
   * @throws SoftwareKeyRefusal if a browser's `navigator.credentials.get()` would reject
   */
  get(options: GetOptions): KeyAssertion {
    return this.#use(() => this.key.get(options, this.origin));
  }

  #use<Result>(ceremony: () => Result): Result {
    try {
      const result = ceremony();
      this.keep(this.key.state);
      return result;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message.replace(/^\w+: /, '') : '';
      throw new SoftwareKeyRefusal(
        `The demo’s software key cannot do this: ${reason}. Sign in as another user, or untick it and use a real key.`,
        { cause },
      );
    }
  }
}
