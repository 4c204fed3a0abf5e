import type { ErrorCode } from '#platform/errors/catalogue.js';
import type { OperationExample } from './operation-example.js';

/** A group of routes in the OpenAPI document. */
export interface ApiGroup {
  readonly name: string;
  readonly description: string;
  /**
   * The paths of the routes in the group: an exact path, or a path and all paths below it
   * (`/v1/keys*`). The longest pattern wins.
   */
  readonly paths: readonly string[];
}

/** The texts of the OpenAPI document that depend on the product. */
export interface ApiDescription {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** The groups, in the order in which pages list them. */
  readonly groups: readonly ApiGroup[];
  /** For each scope, the errors that every route with that scope can return. */
  readonly refusalsOfScope: Readonly<Record<string, readonly ErrorCode[]>>;
  /** Reads the examples of the operations, by the names of the operations. */
  readonly examples: () => Promise<Readonly<Record<string, OperationExample>>>;
}

/** The injection token of the {@link ApiDescription}, which the composition root provides. */
export const API_DESCRIPTION = Symbol('texts of the API document');
