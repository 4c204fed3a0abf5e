import { Injectable } from '@nestjs/common';
import type { ScimActor } from '#domain/scim/scim-actor.js';
import { asDomainError } from '#platform/errors/as-domain-error.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { logError } from '#platform/errors/error-log.js';
import { scimJson } from '#platform/errors/scim-json.js';
import {
  readBulkRequest,
  referencesOf,
  resolved,
  versionOf,
  type BulkOperation,
} from './bulk-request.js';
import { ScimAnswers } from './scim-answers.service.js';
import { ScimGroups } from './scim-groups.service.js';
import { entityTag, locationOf } from './scim-resources.js';
import { ScimUsers } from './scim-users.service.js';

/** What became of an operation (RFC 7644 §3.7.3). */
export interface BulkOutcome {
  readonly method: string;
  readonly bulkId?: string;
  readonly location?: string;
  readonly version?: string;
  readonly status: string;
  readonly response?: unknown;
}

type Made = { readonly id: string; readonly version: string } | undefined;

/**
 * Runs the operations of a bulk request one after the other, each as a request of its own would be: what one of them does
 * stays done, whatever becomes of those behind it. One that refers to what a later one makes waits for it.
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
    const references = new Map(operations.map((operation) => [operation, referencesOf(operation)]));
    const outcomes = new Map<BulkOperation, BulkOutcome>();
    const ids = new Map<string, string>();
    let errors = 0;
    let queue = operations;
    while (queue.length > 0 && errors < failOnErrors) {
      const pending = new Set(queue.map(({ bulkId }) => bulkId));
      const deferred: BulkOperation[] = [];
      for (const operation of queue) {
        if (errors >= failOnErrors) break;
        const missing = (references.get(operation) ?? []).filter((id) => !ids.has(id));
        if (missing.some((id) => pending.has(id) && id !== operation.bulkId)) {
          deferred.push(operation);
          continue;
        }
        const outcome =
          missing.length > 0
            ? refused(operation, unresolved())
            : await this.#try(caller, resolved(operation, ids), ids);
        outcomes.set(operation, outcome);
        if (outcome.response !== undefined) errors += 1;
        pending.delete(operation.bulkId);
      }
      if (deferred.length === queue.length) {
        // They wait for each other, and would for ever.
        for (const operation of deferred) outcomes.set(operation, refused(operation, unresolved()));
        break;
      }
      queue = deferred;
    }
    return operations.flatMap((operation) => outcomes.get(operation) ?? []);
  }

  async #try(
    caller: ScimActor,
    operation: BulkOperation,
    ids: Map<string, string>,
  ): Promise<BulkOutcome> {
    const { method, bulkId, path } = operation;
    try {
      const [type, id] = targetOf(operation);
      const made = await this.#run(caller, operation, type, id);
      if (made && bulkId !== undefined && method === 'POST') ids.set(bulkId, made.id);
      return {
        method,
        ...(bulkId === undefined ? {} : { bulkId }),
        location: locationOf(this.answers.base, type, made?.id ?? id ?? ''),
        ...(made ? { version: entityTag(made) } : {}),
        status: STATUS[method] ?? '200',
      };
    } catch (thrown) {
      const error = asDomainError(thrown);
      if (error.status >= 500) logError(error);
      const location = method === 'POST' ? undefined : this.answers.base + path;
      return refused(operation, error, location);
    }
  }

  /** What a request of its own would do. */
  async #run(
    caller: ScimActor,
    operation: BulkOperation,
    type: ResourceKind,
    id: string | undefined,
  ): Promise<Made> {
    const { method, data } = operation;
    const version = versionOf(operation);
    const service = type === 'Users' ? this.users : this.groups;
    if (id === undefined) return service.create(caller, data);
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

function unresolved(): DomainError {
  return new DomainError(
    'invalid_value',
    'The operation refers to one that did not make anything.',
  );
}
