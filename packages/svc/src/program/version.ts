/** The version of the command, that the bundler writes: see rolldown.config.js. */
declare const SVC_VERSION: string | undefined;

/** Returns the version of the command; a source that runs without the bundler has none. */
export function version(): string {
  return typeof SVC_VERSION === 'string' ? SVC_VERSION : '0.0.0';
}
