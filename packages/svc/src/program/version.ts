/** The version of the command. The bundler writes it: see `rolldown.config.js`. */
declare const SVC_VERSION: string | undefined;

/** Returns the version of the command; 0.0.0 if it runs from the sources. */
export function version(): string {
  return typeof SVC_VERSION === 'string' ? SVC_VERSION : '0.0.0';
}
