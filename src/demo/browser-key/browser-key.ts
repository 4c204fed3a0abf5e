import type {
  AuthenticationResponseJSON,
  RegistrationResponseJSON,
} from '#domain/authenticators/ceremony/webauthn-json.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type {
  CreateOptions,
  GetOptions,
  SoftwareKey,
  SoftwareKeyMemory,
} from '../software-key/software-key.js';

/**
 * The software key that the pages of this demo may use, one for all of them. What it has to remember is written down
 * after every use, so that it logs in after a restart too.
 */
export class BrowserKey {
  constructor(
    private readonly key: SoftwareKey,
    private readonly origin: string,
    private readonly keep: (memory: SoftwareKeyMemory) => void,
  ) {}

  /** @throws DomainError invalid_request where `navigator.credentials.create()` would reject */
  create(options: CreateOptions): RegistrationResponseJSON {
    return this.#use(() => this.key.create(options, this.origin));
  }

  /** @throws DomainError invalid_request where `navigator.credentials.get()` would reject */
  get(options: GetOptions): AuthenticationResponseJSON {
    return this.#use(() => this.key.get(options, this.origin));
  }

  #use<Answer>(ceremony: () => Answer): Answer {
    try {
      const answer = ceremony();
      this.keep(this.key.memory);
      return answer;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message.replace(/^\w+: /, '') : '';
      throw new DomainError(
        'invalid_request',
        `The demo’s software key cannot do this: ${reason}. Sign in as somebody else, or untick it and use a real key.`,
        { cause },
      );
    }
  }
}
