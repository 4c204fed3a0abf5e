import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { LeftOut, ScimActor } from '#domain/directory/provisioning/scim-operation.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import { namesVersion, type Projection, type ResourceSchema } from '../language/scim-language.js';
import type { ScimQuery } from '../query/scim-query.js';
import type { ScimPage, ScimSearch } from '../query/search-table.repository.js';
import { entityTag, type Tagged } from './resource-json.js';
import type { ScimCaller, TokenChecks } from './token-checks.js';

/**
 * Computes the state of a resource after a write from its present state. The function throws if the
 * write cannot be applied.
 *
 * @param taken the error of an earlier attempt at this write, which failed because another resource
 *   has the same name
 */
export type Compute<Stored, Next> = (current: Stored, taken?: DomainError) => Next;

/** The state of a resource after a write, and the parts of the write that were not applied. */
export interface NextState {
  readonly leftOut?: readonly LeftOut[];
}

/**
 * Reports the parts of a write that were not applied. A write with a part that cannot be applied is
 * normally refused as a whole. But a write that ends access is applied without this part, so that
 * the access ends.
 */
export type OnLeftOut = (
  actor: ScimActor,
  resourceType: ResourceSchema['name'],
  id: string,
  leftOut: readonly LeftOut[],
) => Promise<void>;

/** Reads and changes one type of resource in the database. */
interface Provisioning<Stored, Next> {
  create(actor: ScimActor, next: Next, id?: string): Promise<Stored>;
  /**
   * Returns a resource.
   * @throws DomainError not_found
   */
  find(orgId: string, id: string): Promise<Stored>;
  change(actor: ScimActor, id: string, compute: (current: Stored) => Next): Promise<Stored>;
  remove(actor: ScimActor, id: string, verify: (current: Stored) => void): Promise<void>;
}

/**
 * Pieces of JSON that together are the resources of a list, with commas between them. The return
 * value is the number of the resources.
 */
export type JsonPieces = AsyncGenerator<string, number>;

/** The functions in which SCIM users and SCIM groups differ. */
export interface ResourceType<Stored extends Tagged, Next, Listed> {
  readonly schema: ResourceSchema;
  readonly provisioning: Provisioning<Stored, Next>;
  notFound(): DomainError;
  /**
   * Parses the body of a POST, which creates a resource.
   *
   * @throws DomainError for a body that cannot be applied
   */
  readNew(body: unknown): Next;
  /** Parses the body of a PUT. */
  readReplacement(body: unknown): Compute<Stored, Next>;
  /** Parses the body of a PATCH. */
  readPatch(body: unknown): Compute<Stored, Next>;
  /** Returns true if a search can find only one resource, so that it costs the database little. */
  isOfOne(search: ScimSearch): boolean;
  search(tx: EntityManager, orgId: string, search: ScimSearch): Promise<ScimPage<Listed>>;
  /** Renders a resource as JSON: one text, or pieces if its parts are read in batches. */
  render(orgId: string, stored: Stored, projection: Projection): string | JsonPieces;
  /**
   * Renders listed resources as JSON, with commas between them: one text, or pieces if some parts
   * may still have to be read from the database, such as the members of a group.
   */
  renderList(orgId: string, listed: readonly Listed[], query: ScimQuery): string | JsonPieces;
  /**
   * Returns true if the response to a PATCH shows the resource even if the client names no
   * attributes that it wants.
   */
  isShownAfterPatch(orgId: string, stored: Stored): Promise<boolean>;
}

/**
 * The operations on one type of SCIM resource (RFC 7644 §3). Each fails with `unauthenticated` if
 * the token of the request was revoked since the request began. A change with `If-Match` compares
 * versions while the resource is locked, in the transaction of the change, so that no other change
 * comes between.
 */
export class ScimResource<
  Stored extends Tagged = Tagged,
  Next extends NextState = NextState,
  Listed = unknown,
> {
  constructor(
    private readonly tenantWork: TenantWork,
    /** The base URL of the SCIM service. */
    private readonly base: string,
    readonly type: ResourceType<Stored, Next, Listed>,
    private readonly onLeftOut: OnLeftOut,
    private readonly tokenChecks: TokenChecks,
  ) {}

  /** Returns the URL of a resource. */
  locationOf(id: string): string {
    return `${this.base}${this.type.schema.endpoint}/${id}`;
  }

  /**
   * Creates a resource (RFC 7644 §3.3).
   *
   * @param id the id of the new resource, if another operation of a bulk request already refers to
   *   it
   * @throws DomainError invalid_request, invalid_value, uniqueness
   */
  async create(actor: ScimCaller, body: unknown, id?: string): Promise<Stored> {
    await this.tokenChecks.check(actor);
    return this.type.provisioning.create(actor, this.type.readNew(body), id);
  }

  /**
   * Returns a resource (RFC 7644 §3.4.1).
   * @throws DomainError not_found
   */
  async find(actor: ScimCaller, id: string): Promise<Stored> {
    await this.tokenChecks.check(actor);
    return this.type.provisioning.find(actor.orgId, this.#uuidOf(id));
  }

  async search(actor: ScimCaller, search: ScimSearch): Promise<ScimPage<Listed>> {
    await this.tokenChecks.check(actor);
    const { orgId } = actor;
    const found = (tx: EntityManager) => this.type.search(tx, orgId, search);
    return this.type.isOfOne(search)
      ? this.tenantWork.bounded(orgId, found)
      : this.tenantWork.costly(orgId, found);
  }

  /**
   * Replaces a resource (RFC 7644 §3.5.1).
   *
   * @throws DomainError not_found, precondition_failed, invalid_request, invalid_value, uniqueness
   */
  async replace(actor: ScimCaller, id: string, body: unknown, ifMatch?: string): Promise<Stored> {
    return this.#change(actor, this.#uuidOf(id), this.type.readReplacement(body), ifMatch);
  }

  /**
   * Applies a PATCH to a resource (RFC 7644 §3.5.2).
   *
   * @throws DomainError not_found, precondition_failed, uniqueness, or the error of an operation
   */
  async patch(actor: ScimCaller, id: string, body: unknown, ifMatch?: string): Promise<Stored> {
    return this.#change(actor, this.#uuidOf(id), this.type.readPatch(body), ifMatch);
  }

  /**
   * Deletes a resource (RFC 7644 §3.6).
   *
   * @throws DomainError not_found, precondition_failed
   */
  async remove(actor: ScimCaller, id: string, ifMatch?: string): Promise<void> {
    await this.tokenChecks.check(actor);
    const uuid = this.#uuidOf(id);
    await this.type.provisioning.remove(actor, uuid, (current) => checkIfMatch(ifMatch, current));
  }

  /**
   * Changes a resource. If another resource already has the new name, a write that ends access is
   * applied without the name, and any other write is refused.
   */
  async #change(
    actor: ScimCaller,
    id: string,
    compute: Compute<Stored, Next>,
    ifMatch: string | undefined,
  ): Promise<Stored> {
    await this.tokenChecks.check(actor);
    try {
      return await this.#attempt(actor, id, compute, ifMatch);
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'uniqueness') throw error;
      return this.#attempt(actor, id, (current) => compute(current, error), ifMatch);
    }
  }

  async #attempt(
    actor: ScimActor,
    id: string,
    compute: Compute<Stored, Next>,
    ifMatch: string | undefined,
  ): Promise<Stored> {
    let leftOut: readonly LeftOut[] = [];
    const stored = await this.type.provisioning.change(actor, id, (current) => {
      checkIfMatch(ifMatch, current);
      const next = compute(current);
      leftOut = next.leftOut ?? [];
      return next;
    });
    if (leftOut.length > 0) await this.onLeftOut(actor, this.type.schema.name, id, leftOut);
    return stored;
  }

  /**
   * Reads an id, which some clients send in upper case, as the database writes it.
   * @throws DomainError not_found for a text that can be no id
   */
  #uuidOf(id: string): string {
    if (!isUuid(id)) throw this.type.notFound();
    return id.toLowerCase();
  }
}

/**
 * Checks the condition `If-Match` of a change.
 *
 * @throws DomainError precondition_failed if `If-Match` names another version (RFC 7644 §3.14, RFC
 *   9110 §13.1.1)
 */
function checkIfMatch(condition: string | undefined, current: Tagged): void {
  if (condition !== undefined && !namesVersion(condition, entityTag(current))) {
    throw new DomainError('precondition_failed', 'The resource has another version now.');
  }
}
