/** The exit statuses of the command other than 0. */
export const STATUS = { failed: 1, usage: 2, notLoggedIn: 3, refused: 4 } as const;

/** One of the exit statuses in {@link STATUS}. */
export type FailureStatus = (typeof STATUS)[keyof typeof STATUS];

/**
 * A failure that the user can act on. The command prints the message and the next step, and ends
 * with the status.
 */
export class CliFailure extends Error {
  /**
   * @param message states the fact in one line
   * @param whatToDo tells the user the next step in one line; empty if the message says it
   */
  constructor(
    message: string,
    readonly whatToDo: string,
    readonly status: FailureStatus = STATUS.failed,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The message and the next step in one line; the message alone if it says what to do itself. */
  get line(): string {
    if (this.whatToDo === '') return this.message;
    return `${this.message.replace(/\.$/, '')}; ${this.whatToDo}`;
  }
}

/** Makes the failure, with status 2, for arguments that a command does not understand. */
export function usageFailure(message: string, usage: string): CliFailure {
  return new CliFailure(message, `Usage: ${usage}`, STATUS.usage);
}

/** Makes the failure, with status 3, for a command that needs a login. */
export function notLoggedIn(message = 'You are not logged in.'): CliFailure {
  return new CliFailure(message, 'Run: svc login', STATUS.notLoggedIn);
}

/**
 * Returns the code of a system error such as ENOENT, or that of its cause; undefined for any other
 * error.
 */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : errorCode(cause);
}
