import { Reflector } from '@nestjs/core';
import type { PolicyChanges } from './route-policy.js';

/** The number of bytes in a KiB, for the body sizes of routes. */
export const KIB = 1024;

/**
 * Declares the rules of a route beside its handler, and the rules that all routes of a controller
 * share beside the controller. Every route needs a `tier` and an `auth` rule: the application does
 * not start without them.
 */
export const Route = Reflector.createDecorator<PolicyChanges>();

/**
 * The rules for requests that no route takes, by path: an exact path, or a path and all paths below
 * it (`/scim/*`).
 */
export type UnmatchedRules = Readonly<
  Record<
    string,
    Omit<
      PolicyChanges,
      | 'auth'
      | 'summary'
      | 'operation'
      | 'admission'
      | 'goesFirst'
      | 'failureStatus'
      | 'anonymousRows'
      | 'head'
      | 'answers'
      | 'refusals'
      | 'asks'
    > &
      SlashRule
  >
>;

interface SlashRule {
  /**
   * True if a second slash right behind this path is dropped. Some clients append `/path` to a base
   * URL that already ends with a slash.
   */
  readonly dropsSecondSlash?: boolean;
}

/**
 * Declares, on a module and by path, the rules for requests that no route takes. The rules of a
 * longer path replace those of a shorter one. The routes at these paths inherit the rules that they
 * do not declare themselves.
 */
export const UnmatchedPaths = Reflector.createDecorator<UnmatchedRules>();
