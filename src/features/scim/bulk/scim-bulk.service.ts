import { Injectable } from '@nestjs/common';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { newUuid } from '#platform/clock/random.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { scimJson } from '#platform/http/errors/scim-json.js';
import { firstOfCircle, madeAs, withoutOwnId, type References } from './bulk-order.js';
import {
  readBulkRequest,
  referencesOf,
  resolved,
  versionOf,
  type BulkOperation,
} from './bulk-request.js';
import { ScimAnswers } from '../resources/scim-answers.service.js';
import { ScimGroups } from '../resources/scim-groups.service.js';
import { entityTag, locationOf } from '../resources/resource-json.js';
import { ScimUsers } from '../resources/scim-users.service.js';

/** What became of an operation (RFC 7644 §3.7.3). */
export interface BulkOutcome {
  readonly method: string;
  readonly bulkId?: string;
  readonly location?: string;
  readonly version?: string;
  readonly status: string;
  readonly response?: unknown;
}

type Made = { readonly id: string; readonly tag: string | undefined } | undefined;

/** What has become of a bulk request so far. */
interface Progress {
  readonly caller: ScimActor;
  readonly references: References;
  /** Those that make something and have no bulkId of their own. */
  readonly nameless: ReadonlySet<BulkOperation>;
  readonly outcomes: Map<BulkOperation, BulkOutcome>;
  errors: number;
  /** What was made, by its bulkId. */
  readonly ids: Map<string, string>;
  /** The ids that users will have who are made after others that refer to them. */
  readonly promised: Map<string, string>;
  /** The ids of users who were made before the users that they refer to. */
  readonly early: Map<BulkOperation, string>;
}

function progressOf(caller: ScimActor, operations: readonly BulkOperation[]): Progress {
  return {
    caller,
    references: new Map(operations.map((operation) => [operation, referencesOf(operation)])),
    nameless: withoutOwnId(operations),
    outcomes: new Map(),
    errors: 0,
    ids: new Map(),
    promised: new Map(),
    early: new Map(),
  };
}

/**
 * Runs the operations of a bulk request one after the other, each as a request of its own would be: what one of them does
 * stays done, also where a later one fails. One that refers to what a later one makes waits for it. Of users who are
 * each other's managers, the first is made with the id that the next one will have (RFC 7644 §3.7.1).
 */
@Injectable()
export class ScimBulk {
  constructor(
    private readonly users: ScimUsers,
    private readonly groups: ScimGroups,
    private readonly answers: ScimAnswers,
  ) {}

  /** @returns in the order of the request; what failOnErrors left alone is not there */
  async run(caller: ScimActor, body: unknown): Promise<BulkOutcome[]> {
    const { operations, failOnErrors } = readBulkRequest(body);
    const progress = progressOf(caller, operations);
    const { outcomes, early, references } = progress;
    let queue: readonly BulkOperation[] = operations;
    let first: BulkOperation | undefined;
    while (queue.length > 0 && progress.errors < failOnErrors) {
      const deferred = await this.#pass(progress, queue, failOnErrors, first);
      const isStuck = deferred.length === queue.length;
      first = isStuck ? firstOfCircle(deferred, references) : undefined;
      if (isStuck && !first) {
        // They wait for each other, and none can be the first.
        for (const operation of deferred) outcomes.set(operation, refused(operation, unresolved()));
        break;
      }
      queue = deferred;
    }
    for (const [operation, id] of early) await this.#complete(progress, operation, id);
    return operations.flatMap((operation) => outcomes.get(operation) ?? []);
  }

  /**
   * Goes through a queue once.
   *
   * @param first is run although it waits for others
   * @returns those that wait for what others make
   */
  async #pass(
    progress: Progress,
    queue: readonly BulkOperation[],
    failOnErrors: number,
    first: BulkOperation | undefined,
  ): Promise<BulkOperation[]> {
    const { outcomes, ids, references, nameless } = progress;
    const pending = new Set(queue.filter((one) => !nameless.has(one)).map(madeAs));
    const deferred: BulkOperation[] = [];
    for (const operation of queue) {
      if (progress.errors >= failOnErrors) break;
      const missing = (references.get(operation) ?? []).filter((id) => !ids.has(id));
      const waits = missing.some((id) => pending.has(id));
      if (waits && operation !== first) {
        deferred.push(operation);
        continue;
      }
      let outcome: BulkOutcome;
      if (nameless.has(operation)) outcome = refused(operation, noOwnId());
      else if (missing.length > 0 && !waits) outcome = refused(operation, unresolved());
      else outcome = await this.#try(progress, operation, missing);
      outcomes.set(operation, outcome);
      if (outcome.response !== undefined) progress.errors += 1;
      if (!nameless.has(operation)) pending.delete(madeAs(operation));
    }
    return deferred;
  }

  /** @param missing what the operation refers to, and is made later */
  async #try(
    { caller, ids, promised, early }: Progress,
    unread: BulkOperation,
    missing: readonly string[],
  ): Promise<BulkOutcome> {
    for (const id of missing) promised.set(id, promised.get(id) ?? newUuid());
    const operation = resolved(unread, new Map([...promised, ...ids]));
    const { method, bulkId, path } = operation;
    try {
      const [type, id] = targetOf(operation);
      const own = madeAs(operation);
      const made = await this.#run(caller, operation, type, id, promised.get(own ?? ''));
      if (made && own !== undefined) ids.set(own, made.id);
      if (made && missing.length > 0) early.set(unread, made.id);
      return {
        method,
        ...(bulkId === undefined ? {} : { bulkId }),
        location: locationOf(this.answers.base, type, made?.id ?? id ?? ''),
        ...(made ? { version: entityTag(made) } : {}),
        status: STATUS[method] ?? '200',
      };
    } catch (thrown) {
      const location = method === 'POST' ? undefined : this.answers.base + path;
      return failed(operation, thrown, location);
    }
  }

  /** Looks again at a user who was made before their manager: where there is none in the end, the reference goes. */
  async #complete(
    { caller, ids, outcomes, references }: Progress,
    operation: BulkOperation,
    id: string,
  ): Promise<void> {
    const outcome = outcomes.get(operation);
    if (!outcome) return;
    try {
      const isWhole = (references.get(operation) ?? []).every((one) => ids.has(one));
      const user = isWhole
        ? await this.users.find(caller, id)
        : await this.users.patch(caller, id, { Operations: [{ op: 'remove', path: 'manager' }] });
      outcomes.set(operation, { ...outcome, version: entityTag(user) });
    } catch (thrown) {
      outcomes.set(operation, failed(operation, thrown, outcome.location));
    }
  }

  /** What a request of its own would do. */
  async #run(
    caller: ScimActor,
    operation: BulkOperation,
    type: ResourceKind,
    id: string | undefined,
    ownId: string | undefined,
  ): Promise<Made> {
    const { method, data } = operation;
    const version = versionOf(operation);
    const service = type === 'Users' ? this.users : this.groups;
    if (id === undefined && type === 'Users') return this.users.create(caller, data, ownId);
    if (id === undefined) return this.groups.create(caller, data);
    if (method === 'PUT') return service.replace(caller, id, data, version);
    if (method === 'PATCH') return service.patch(caller, id, data, version);
    await service.remove(caller, id, version);
    return undefined;
  }
}

type ResourceKind = 'Users' | 'Groups';

const STATUS: Readonly<Record<string, string>> = { POST: '201', DELETE: '204' };
const TARGET = /^\/(users|groups)(?:\/([^/]+))?$/i;

/** @throws DomainError invalid_request for a method or a path that means nothing here */
function targetOf({ method, path }: BulkOperation): [ResourceKind, string | undefined] {
  const [, name, id] = TARGET.exec(path) ?? [];
  const takesId = ['PUT', 'PATCH', 'DELETE'].includes(method);
  if (name === undefined || (!takesId && method !== 'POST') || takesId !== (id !== undefined)) {
    throw new DomainError(
      'invalid_request',
      'The method and the path of the operation do not go together.',
    );
  }
  return [name.toLowerCase() === 'users' ? 'Users' : 'Groups', id];
}

function refused(
  { method, bulkId }: BulkOperation,
  error: DomainError,
  location?: string,
): BulkOutcome {
  return {
    method,
    ...(bulkId === undefined ? {} : { bulkId }),
    ...(location === undefined ? {} : { location }),
    status: String(error.status),
    response: JSON.parse(scimJson(error).content),
  };
}

function failed(operation: BulkOperation, thrown: unknown, location?: string): BulkOutcome {
  const error = asDomainError(thrown);
  if (error.status >= 500) logError(error);
  return refused(operation, error, location);
}

function noOwnId(): DomainError {
  return new DomainError('invalid_value', 'A POST needs a bulkId that no other POST has.');
}

function unresolved(): DomainError {
  return new DomainError(
    'invalid_value',
    'The operation refers to one that did not make anything.',
  );
}
