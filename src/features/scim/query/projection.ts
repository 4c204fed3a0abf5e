import { DomainError } from '#platform/errors/domain-error.js';
import { isObject } from '../schema/attribute-value.js';
import {
  attributesOf,
  findAttribute,
  findSchema,
  type AttributeReference,
  type ResourceSchema,
} from '../schema/schemas.js';

/** Which attributes an answer shows (RFC 7644 §3.9): decided before anything is loaded. */
export interface Projection {
  /** Whether an attribute, by its path, is shown, if only in part. */
  includes(path: string): boolean;
  /** Whether a group's members are to be loaded. */
  readonly needsMembers: boolean;
  /** Whether a user's groups are to be loaded. */
  readonly needsGroups: boolean;
  /** Whether anything of a user is shown that has no column. */
  readonly needsAttributes: boolean;
  /** Whether the version is shown, which is of all that can be shown. */
  readonly needsVersion: boolean;
  /** Whether nothing in particular was asked for. */
  readonly isDefault: boolean;
}

/** The two query parameters, as they came. */
export interface ProjectionQuery {
  readonly attributes?: string | undefined;
  readonly excludedAttributes?: string | undefined;
}

const MAX_LENGTH = 8192;

/**
 * Reads `attributes` and `excludedAttributes`. Names we do not have are ignored.
 * @throws DomainError `invalid_value` for both at once, which exclude one another, or for a list that is too long
 */
export function parseProjection(query: ProjectionQuery, resource: ResourceSchema): Projection {
  const wanted = pathsIn(query.attributes, resource);
  const unwanted = pathsIn(query.excludedAttributes, resource);
  if (wanted || unwanted) return projectionOf(resource, wanted, unwanted);
  let usual = USUAL.get(resource);
  if (!usual) USUAL.set(resource, (usual = projectionOf(resource)));
  return usual;
}

/** What of a user does not lie among their attributes. */
const BESIDE: ReadonlySet<string> = new Set([
  'schemas',
  'id',
  'userName',
  'externalId',
  'active',
  'meta',
  'groups',
]);

/** What is shown of a resource unless a client says otherwise: the same for everybody. */
const USUAL = new WeakMap<ResourceSchema, Projection>();

function projectionOf(
  resource: ResourceSchema,
  wanted?: ReadonlySet<string>,
  unwanted?: ReadonlySet<string>,
): Projection {
  if (wanted && unwanted) {
    throw new DomainError(
      'invalid_value',
      'attributes and excludedAttributes exclude one another.',
    );
  }
  const shown = new Set(
    attributesOf(resource)
      .flatMap(withSubs)
      .filter((target) => isShown(target, wanted, unwanted))
      .map(({ path }) => path),
  );
  const includes = (path: string) => shown.has(path);
  return {
    includes,
    needsMembers: includes('members'),
    needsGroups: includes('groups'),
    needsAttributes: [...shown].some((path) => !BESIDE.has(path.split('.', 1)[0] ?? path)),
    needsVersion: includes('meta.version'),
    isDefault: !wanted && !unwanted,
  };
}

function isShown(
  { attribute, sub, path, extension }: AttributeReference,
  wanted: ReadonlySet<string> | undefined,
  unwanted: ReadonlySet<string> | undefined,
): boolean {
  if (attribute.returned === 'never') return false;
  if (attribute.returned === 'always') return true;
  const root = sub ? path.slice(0, -sub.name.length - 1) : path;
  const covers = (paths: ReadonlySet<string>) =>
    paths.has(path) || paths.has(root) || (extension !== undefined && paths.has(extension));
  if (wanted) return covers(wanted) || (!sub && hasPartOf(root, wanted));
  return !unwanted || !covers(unwanted);
}

/** `attributes=name.givenName` shows `name`, in part. */
function hasPartOf(root: string, wanted: ReadonlySet<string>): boolean {
  for (const path of wanted) if (path.startsWith(`${root}.`)) return true;
  return false;
}

function withSubs(target: AttributeReference): AttributeReference[] {
  const subs = target.attribute.subAttributes ?? [];
  return [target, ...subs.map((sub) => ({ ...target, sub, path: `${target.path}.${sub.name}` }))];
}

/** The paths a parameter names, extensions by their URN; undefined when it names nothing. */
function pathsIn(
  text: string | undefined,
  resource: ResourceSchema,
): ReadonlySet<string> | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  if (text.length > MAX_LENGTH) {
    throw new DomainError('invalid_value', 'The list of attributes is too long.');
  }
  return new Set(text.split(',').flatMap((name) => pathsOf(withoutBrackets(name), resource)));
}

/** Microsoft's own tests ask for `emails[type eq "work"]`: no part of a list can be asked for, so it is shown whole. */
function withoutBrackets(name: string): string {
  const [path = ''] = name.split('[', 1);
  return path.trim();
}

function pathsOf(name: string, resource: ResourceSchema): string[] {
  const found = findAttribute(resource, name);
  if (found) return [found.path];
  const schema = findSchema(resource, name);
  if (schema !== resource.core) return schema ? [schema.id] : [];
  return schema.attributes.map((attribute) => attribute.name);
}

/** A resource as the client wants to see it; the given one stays as it is. */
export function project(
  resource: Readonly<Record<string, unknown>>,
  projection: Projection,
  schema: ResourceSchema,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(resource)) {
    const isExtension = schema.extensions.some(({ id }) => id === name);
    const part = isExtension
      ? membersShown(value, (member) => visible(`${name}:${member}`, projection))
      : visible(name, projection)?.(value);
    if (part !== undefined) shown[name] = part;
  }
  return shown;
}

type Show = (value: unknown) => unknown;
const whole: Show = (value) => value;

/** How to show an attribute; undefined for one that is not shown. */
function visible(path: string, projection: Projection): Show | undefined {
  if (!projection.includes(path)) return undefined;
  const show: Show = (value) => {
    if (isObject(value)) {
      return membersShown(value, (sub) =>
        projection.includes(`${path}.${sub}`) ? whole : undefined,
      );
    }
    if (!Array.isArray(value)) return value;
    const elements = value.map(show).filter((element) => element !== undefined);
    return elements.length === 0 && value.length > 0 ? undefined : elements;
  };
  return show;
}

/** The members of an object that are shown; undefined when none is. */
function membersShown(value: unknown, how: (name: string) => Show | undefined): unknown {
  if (!isObject(value)) return undefined;
  const members = Object.entries(value)
    .map(([name, member]) => [name, how(name)?.(member)] as const)
    .filter(([, member]) => member !== undefined);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
