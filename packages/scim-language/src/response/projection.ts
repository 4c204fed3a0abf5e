import { ScimError } from '../errors/scim-error.js';
import { isObject } from '../schema/attribute-value.js';
import {
  attributesOf,
  findAttribute,
  findSchema,
  type AttributeReference,
  type ResourceSchema,
} from '../schema/schemas.js';

/**
 * The attributes that a response shows (RFC 7644 §3.9). They are known before a resource is loaded,
 * so that the attributes that are not shown need not be loaded.
 */
export interface Projection {
  /** Returns true if an attribute, named by its path, is shown in whole or in part. */
  includes(path: string): boolean;
  /** True if a response shows the members of a group, in whole or in part. */
  readonly needsMembers: boolean;
  /** True if a response shows the groups of a user. */
  readonly needsGroups: boolean;
  /**
   * True if a response shows attributes of a user that are not listed in {@link BESIDE}, so that
   * all attributes must be loaded.
   */
  readonly needsAttributes: boolean;
  /** True if a response shows the version of the resource, which changes with all attributes. */
  readonly needsVersion: boolean;
  /** True if the client chose no attributes. */
  readonly isDefault: boolean;
}

/** The two query parameters that choose the attributes of a response, as the client sent them. */
export interface ProjectionQuery {
  readonly attributes?: string | undefined;
  readonly excludedAttributes?: string | undefined;
}

const MAX_LENGTH = 8192;

/**
 * Parses `attributes` and `excludedAttributes`, by which a client chooses the attributes of a
 * response. Unknown names are ignored.
 * @throws ScimError `invalidValue` if both are present, or a list is too long
 */
export function parseProjection(query: ProjectionQuery, resource: ResourceSchema): Projection {
  const wanted = pathsIn(query.attributes, resource);
  const unwanted = pathsIn(query.excludedAttributes, resource);
  if (wanted || unwanted) return projectionOf(resource, wanted, unwanted);
  let usual = DEFAULTS.get(resource);
  if (!usual) DEFAULTS.set(resource, (usual = projectionOf(resource)));
  return usual;
}

/**
 * The attributes of a user that can be shown without loading the others. See {@link
 * Projection.needsAttributes}.
 */
const BESIDE: ReadonlySet<string> = new Set([
  'schemas',
  'id',
  'userName',
  'externalId',
  'active',
  'meta',
  'groups',
]);

/**
 * The projection (the attributes that a response shows) for a request that chooses none, by
 * resource type.
 */
const DEFAULTS = new WeakMap<ResourceSchema, Projection>();

function projectionOf(
  resource: ResourceSchema,
  wanted?: ReadonlySet<string>,
  unwanted?: ReadonlySet<string>,
): Projection {
  if (wanted && unwanted) {
    throw new ScimError('invalidValue', 'attributes and excludedAttributes exclude one another.');
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
    needsMembers: [...shown].some((path) => path.startsWith('members.')),
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

/**
 * Returns true if a part of an attribute was requested: `attributes=name.givenName` shows a part of
 * `name`.
 */
function hasPartOf(root: string, wanted: ReadonlySet<string>): boolean {
  for (const path of wanted) if (path.startsWith(`${root}.`)) return true;
  return false;
}

function withSubs(target: AttributeReference): AttributeReference[] {
  const subs = target.attribute.subAttributes ?? [];
  return [target, ...subs.map((sub) => ({ ...target, sub, path: `${target.path}.${sub.name}` }))];
}

/**
 * Returns the paths of attributes in a parameter. The URN of an extension stands for all its
 * attributes. Returns undefined for an empty parameter.
 */
function pathsIn(
  text: string | undefined,
  resource: ResourceSchema,
): ReadonlySet<string> | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  if (text.length > MAX_LENGTH) {
    throw new ScimError('invalidValue', 'The list of attributes is too long.');
  }
  return new Set(text.split(',').flatMap((name) => pathsOf(withoutBrackets(name), resource)));
}

/**
 * Removes a filter in brackets from a name. Microsoft's tests request `emails[type eq "work"]`, but
 * a list is always shown as a whole.
 */
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

/** Copies the attributes of a resource that a response shows. */
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
const showWhole: Show = (value) => value;

/**
 * Returns a function that copies the visible parts of an attribute; undefined for a hidden
 * attribute.
 */
function visible(path: string, projection: Projection): Show | undefined {
  if (!projection.includes(path)) return undefined;
  const show: Show = (value) => {
    if (isObject(value)) {
      return membersShown(value, (sub) =>
        projection.includes(`${path}.${sub}`) ? showWhole : undefined,
      );
    }
    if (!Array.isArray(value)) return value;
    const elements = value.map(show).filter((element) => element !== undefined);
    return elements.length === 0 && value.length > 0 ? undefined : elements;
  };
  return show;
}

/** Copies the visible members of an object; undefined if all are hidden. */
function membersShown(value: unknown, how: (name: string) => Show | undefined): unknown {
  if (!isObject(value)) return undefined;
  const members = Object.entries(value)
    .map(([name, member]) => [name, how(name)?.(member)] as const)
    .filter(([, member]) => member !== undefined);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
