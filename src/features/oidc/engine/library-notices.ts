import type { Logger } from '@nestjs/common';

const PREFIX = /^oidc-provider (?:NOTICE|WARNING): /;
const METHODS = ['info', 'warn'] as const;

/** The logger of the newest application of the process. */
let current: Logger | undefined;

/**
 * Writes what the library says on the console, once a start and in its own format, to the log instead. It has no other hook
 * for it; whatever else is said on the console is left alone.
 */
export function routeLibraryNotices(logger: Logger): void {
  const isRouted = current !== undefined;
  current = logger;
  if (isRouted) return;
  for (const method of METHODS) {
    // oxlint-disable-next-line no-console -- the library's only way to say something
    const original = console[method].bind(console);
    // oxlint-disable-next-line no-console -- the library's only way to say something
    console[method] = (...words: unknown[]) => {
      const [first] = words;
      if (typeof first === 'string' && PREFIX.test(first))
        current?.debug(first.replace(PREFIX, ''));
      else original(...words);
    };
  }
}
