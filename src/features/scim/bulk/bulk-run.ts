import type { DirectoryUser } from '#domain/directory/provisioning/directory-user.js';
import type { ScimRefusal } from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { ENTERPRISE_URN } from '../language/scim-language.js';
import { entityTag, type Tagged } from '../resources/resource-json.js';
import { refusalOf } from '../resources/refused-writes.js';
import type { ScimResource } from '../resources/scim-resource.js';
import type { ScimResources } from '../resources/scim-resources.service.js';
import type { ScimCaller } from '../resources/token-checks.js';
import { storedUser } from '../resources/user-state.js';
import { firstOfCircle, madeAs, withoutOwnId, type References } from './bulk-order.js';
import {
  failed,
  noOwnId,
  refused,
  succeeded,
  tooLate,
  unresolved,
  type BulkOutcome,
} from './bulk-outcome.js';
import {
  readBulkRequest,
  REFERENCE,
  referencesOf,
  resolved,
  versionOf,
  withoutUnresolved,
  type BulkOperation,
} from './bulk-request.js';

/**
 * The milliseconds after which no further operation of a request begins. It is less than the 30
 * seconds after which the client gets 408, so that the client still learns which operations ran. An
 * operation that began later could undo what the client has sent meanwhile, such as a deactivation.
 */
const LATEST_BEGIN = 20_000;

/**
 * Runs the operations of a bulk request one after the other. Each is a request of its own, so that
 * an operation keeps its effect if a later one fails. An operation that refers to a resource that a
 * later operation creates runs after that one. While it waits, later changes of the resource that
 * it changes wait too. If users are each other's managers, the first one is created before its
 * manager. The id of the manager is then chosen in advance (RFC 7644 §3.7.1).
 *
 * @returns the outcomes in the order of the request, without the operations that failOnErrors
 *   skipped
 */
export async function runBulk(
  resources: ScimResources,
  caller: ScimCaller,
  body: unknown,
): Promise<BulkOutcome[]> {
  const { operations, failOnErrors } = readBulkRequest(body);
  const run = new BulkRun(resources, caller, operations, failOnErrors);
  const outcomes = await run.run();
  await resources.recordRefusals(caller, run.refusals);
  return outcomes;
}

/** The methods of a SCIM resource that an operation of a bulk request can call. */
type BulkTarget = Pick<ScimResource, 'create' | 'replace' | 'patch' | 'remove' | 'locationOf'>;

/** The progress of one bulk request: the ids of created resources, and the outcomes. */
class BulkRun {
  readonly #references: References;
  /** The POST operations without a bulkId of their own. */
  readonly #nameless: ReadonlySet<BulkOperation>;
  readonly #outcomes = new Map<BulkOperation, BulkOutcome>();
  /** The refused writes of the request, which are recorded after the run. */
  readonly refusals: ScimRefusal[] = [];
  #errors = 0;
  /** The operation that failed last; undefined if none failed. */
  #lastFailed: BulkOperation | undefined;
  /** The ids of the resources that were created, by bulkId. */
  readonly #ids = new Map<string, string>();
  /**
   * The ids that users will get, by bulkId. Other operations refer to these users before they are
   * created.
   */
  readonly #promised = new Map<string, string>();
  /**
   * The ids of users who were created before the users to whom they refer, by operation. The
   * references are set later.
   */
  readonly #early = new Map<BulkOperation, string>();
  /** The operations that only waited for an earlier change of the same resource. */
  readonly #behind = new Set<BulkOperation>();

  constructor(
    private readonly resources: ScimResources,
    private readonly caller: ScimCaller,
    private readonly operations: readonly BulkOperation[],
    private readonly failOnErrors: number,
  ) {
    this.#references = new Map(operations.map((each) => [each, referencesOf(each)]));
    this.#nameless = withoutOwnId(operations);
  }

  async run(): Promise<BulkOutcome[]> {
    let queue: readonly BulkOperation[] = this.operations;
    let first: BulkOperation | undefined;
    while (queue.length > 0 && this.#errors < this.failOnErrors) {
      const deferred = await this.#pass(queue, first);
      const isStuck = deferred.length === queue.length;
      first = isStuck ? firstOfCircle(deferred, this.#references) : undefined;
      if (isStuck && !first) {
        // The operations wait for each other, and none of them can run first, so their references
        // stay unresolved.
        for (const each of deferred) this.#outcomes.set(each, await this.#withoutWait(each));
        break;
      }
      queue = deferred;
    }
    if (this.#errors >= this.failOnErrors) await this.#runDeferred();
    const bulkIds = new Map([...this.#promised].map(([bulkId, id]) => [id, bulkId]));
    for (const [operation, id] of this.#early) await this.#complete(operation, id, bulkIds);
    return this.operations.flatMap((operation) => this.#outcomes.get(operation) ?? []);
  }

  /**
   * Runs the PATCH and PUT operations that still wait for a later operation when the error limit is
   * reached, if they stand before the operation that failed last. They run without the references
   * to resources that were not created, because they may end the access of users. So do the changes
   * that wait only for an earlier change of the same resource.
   */
  async #runDeferred(): Promise<void> {
    const last = this.operations.findIndex((each) => each === this.#lastFailed);
    for (const [index, each] of this.operations.entries()) {
      const runs = this.#behind.has(each) || (index < last && isChangeOfResource(each));
      if (!runs || this.#outcomes.has(each)) continue;
      this.#outcomes.set(each, await this.#withoutWait(each));
    }
  }

  /** Runs an operation that waited, without the references to resources that were not created. */
  #withoutWait(operation: BulkOperation): Promise<BulkOutcome> {
    const isResolved = this.#referencesOf(operation).every((id) => this.#ids.has(id));
    return isResolved ? this.#try(operation, []) : this.#unresolved(operation);
  }

  /**
   * Runs those operations of a list that refer to no operation that has still to run. If a change
   * of a resource waits, the later changes of this resource wait too. The last of them decides
   * whether a user keeps the access.
   *
   * @param first an operation that runs although it refers to such operations
   * @returns the operations that still wait
   */
  async #pass(
    queue: readonly BulkOperation[],
    first: BulkOperation | undefined,
  ): Promise<BulkOperation[]> {
    const pending = new Set(queue.filter((each) => !this.#nameless.has(each)).map(madeAs));
    const deferred: BulkOperation[] = [];
    const waiting = new Set<string>();
    for (const operation of queue) {
      if (this.#errors >= this.failOnErrors) break;
      const missing = this.#referencesOf(operation).filter((id) => !this.#ids.has(id));
      const waits = missing.some((id) => pending.has(id));
      const changed = changedBy(operation);
      const isBehind = changed !== undefined && waiting.has(changed);
      if ((waits || isBehind) && operation !== first) {
        deferred.push(operation);
        if (changed !== undefined) waiting.add(changed);
        if (!waits) this.#behind.add(operation);
        continue;
      }
      const isNameless = this.#nameless.has(operation);
      let outcome: BulkOutcome;
      if (isNameless) outcome = this.#refused(operation, noOwnId());
      else if (missing.length > 0 && !waits) outcome = await this.#unresolved(operation);
      else outcome = await this.#try(operation, missing);
      this.#outcomes.set(operation, outcome);
      if (outcome.response !== undefined) {
        this.#errors += 1;
        this.#lastFailed = operation;
      }
      if (!isNameless) pending.delete(madeAs(operation));
    }
    return deferred;
  }

  /**
   * Runs an operation. An error becomes an outcome.
   * @param missing the bulkIds of users that are created later, and to which the operation refers
   */
  async #try(unread: BulkOperation, missing: readonly string[]): Promise<BulkOutcome> {
    for (const id of missing) this.#promised.set(id, this.#promised.get(id) ?? newUuid());
    const operation = resolved(unread, new Map([...this.#promised, ...this.#ids]));
    try {
      const { resource, id } = this.#targetOf(operation);
      const own = madeAs(operation);
      const made = await this.#runOne(resource, id, operation, this.#promised.get(own ?? ''));
      if (made && own !== undefined) this.#ids.set(own, made.id);
      if (made && missing.length > 0) this.#early.set(unread, made.id);
      return succeeded(operation, resource.locationOf(made?.id ?? id ?? ''), made);
    } catch (thrown) {
      return this.#failed(operation, thrown);
    }
  }

  /**
   * Runs an operation with references for which no resource was created. A PATCH or PUT runs
   * without these references, because it may end the access of a user. Any other operation is
   * refused.
   */
  async #unresolved(operation: BulkOperation): Promise<BulkOutcome> {
    if (!isChangeOfResource(operation)) {
      // The resource may be missing only because its own operation did not begin.
      return this.#refused(operation, this.#isLate() ? tooLate() : unresolved());
    }
    try {
      const known = withoutUnresolved(operation, this.#ids);
      const { resource, id } = this.#targetOf(known);
      const stored = await this.#runOne(resource, id, known, undefined);
      return succeeded(operation, resource.locationOf(id ?? ''), stored);
    } catch (thrown) {
      const isRefused = thrown instanceof DomainError && UNRESOLVED.has(thrown.code);
      return this.#failed(operation, isRefused ? unresolved() : thrown);
    }
  }

  #refused(operation: BulkOperation, error: DomainError): BulkOutcome {
    this.#note(operation, error);
    return refused(operation, error);
  }

  #failed(operation: BulkOperation, thrown: unknown): BulkOutcome {
    const { method, path } = operation;
    this.#note(operation, asDomainError(thrown));
    return failed(operation, thrown, method === 'POST' ? undefined : this.resources.base + path);
  }

  #note({ method, path }: BulkOperation, error: DomainError): void {
    const refusal = refusalOf(method, path, error);
    if (refusal) this.refusals.push(refusal);
  }

  /**
   * Sets the manager of a user who was created before the manager. A manager may have another id
   * than the promised one, because a POST can take over an existing member. If the manager was not
   * created, the reference is removed.
   */
  async #complete(
    operation: BulkOperation,
    id: string,
    bulkIds: ReadonlyMap<unknown, string>,
  ): Promise<void> {
    const outcome = this.#outcomes.get(operation);
    if (!outcome) return;
    const { users } = this.resources;
    try {
      const created = await users.find(this.caller, id);
      const change = this.#changeOf(managerOf(created), bulkIds);
      const user = change ? await users.patch(this.caller, id, { Operations: [change] }) : created;
      this.#outcomes.set(operation, { ...outcome, version: entityTag(user) });
    } catch (thrown) {
      this.#outcomes.set(operation, failed(operation, thrown, outcome.location));
    }
  }

  /**
   * Returns the PATCH operation that corrects a manager that was written with a promised id;
   * undefined if the manager has the promised id, or no id was promised.
   *
   * @param bulkIds the bulkIds of the users to whom ids were promised, by these ids
   */
  #changeOf(manager: unknown, bulkIds: ReadonlyMap<unknown, string>): object | undefined {
    const bulkId = bulkIds.get(manager);
    if (bulkId === undefined) return undefined;
    const value = this.#ids.get(bulkId);
    if (value === manager) return undefined;
    const path = 'manager';
    return value === undefined ? { op: 'remove', path } : { op: 'replace', path, value };
  }

  /** Returns true if the request has taken so long that no further operation begins. */
  #isLate(): boolean {
    return this.resources.clock.monotonic() - this.caller.foundAt > LATEST_BEGIN;
  }

  /**
   * Runs an operation as a request of its own.
   *
   * @returns the resource after the operation; undefined for a removed resource
   * @throws DomainError timed_out if the bulk request has taken too long, or the error of the
   *   operation
   */
  async #runOne(
    resource: BulkTarget,
    id: string | undefined,
    operation: BulkOperation,
    promisedId: string | undefined,
  ): Promise<Tagged | undefined> {
    const { method, data } = operation;
    if (this.#isLate()) throw tooLate();
    const version = versionOf(operation);
    if (id === undefined) return resource.create(this.caller, data, promisedId);
    if (method === 'PUT') return resource.replace(this.caller, id, data, version);
    if (method === 'PATCH') return resource.patch(this.caller, id, data, version);
    await resource.remove(this.caller, id, version);
    return undefined;
  }

  /**
   * Finds the resource and the id that the path of an operation names.
   * @throws DomainError invalid_request for a path that is not of SCIM, or a method that the path
   *   does not allow
   */
  #targetOf({ method, path }: BulkOperation): { resource: BulkTarget; id: string | undefined } {
    const [, name, id] = TARGET.exec(path) ?? [];
    const takesId = ['PUT', 'PATCH', 'DELETE'].includes(method);
    if (name === undefined || (!takesId && method !== 'POST') || takesId !== (id !== undefined)) {
      throw new DomainError(
        'invalid_request',
        'The method and the path of the operation do not go together.',
      );
    }
    const { users, groups } = this.resources;
    return { resource: name.toLowerCase() === 'users' ? users : groups, id };
  }

  #referencesOf(operation: BulkOperation): readonly string[] {
    return this.#references.get(operation) ?? [];
  }
}

/** Returns the id of the manager of a user; undefined for a user without a manager. */
function managerOf(user: DirectoryUser): unknown {
  const { attributes } = storedUser(user);
  const enterprise = attributes[ENTERPRISE_URN] as { manager?: { value?: unknown } } | undefined;
  return enterprise?.manager?.value;
}

/**
 * The error codes of a change that refers (`bulkId:`) to a resource that was not created. The code
 * is `invalid_value` if a value contains the reference, and `invalid_filter` if the brackets of a
 * path do.
 */
const UNRESOLVED: ReadonlySet<string> = new Set(['invalid_value', 'invalid_filter']);

/** Returns true for a PATCH or PUT of a resource that the request itself does not create. */
function isChangeOfResource({ method, path }: BulkOperation): boolean {
  const isOfResource = TARGET.exec(path)?.[2] !== undefined && !path.includes(REFERENCE);
  return (method === 'PATCH' || method === 'PUT') && isOfResource;
}

/** Returns the path of the resource that a PATCH or PUT changes; undefined for other operations. */
function changedBy({ method, path }: BulkOperation): string | undefined {
  return method === 'PATCH' || method === 'PUT' ? path.toLowerCase() : undefined;
}

const TARGET = /^\/(users|groups)(?:\/([^/]+))?$/i;
