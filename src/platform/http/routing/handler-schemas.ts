import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { toJSONSchema, type ZodType } from 'zod';

/** The schemas that validate the body, the query and the other parts of a request for a handler. */
export interface HandlerSchemas {
  readonly body?: ZodType;
  readonly query?: ZodType;
  readonly param?: ZodType;
}

const PARTS = [
  ['body', RouteParamtypes.BODY],
  ['query', RouteParamtypes.QUERY],
  ['param', RouteParamtypes.PARAM],
] as const;

type Arguments = Readonly<Record<string, { readonly schema?: ZodType }>>;

/** Finds the schemas in the decorators of a handler's parameters. */
export function handlerSchemas(controller: object, name: string): HandlerSchemas {
  const found = (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) ?? {}) as Arguments;
  const rows = Object.entries(found);
  const parts = PARTS.flatMap(([part, type]) => {
    const [, argument] =
      rows.find(([key, { schema }]) => schema && key.startsWith(`${type}:`)) ?? [];
    return argument?.schema ? [[part, argument.schema] as const] : [];
  });
  return Object.fromEntries(parts);
}

const namesOfSchemas = new WeakMap<ZodType, readonly string[]>();

/**
 * Returns the names of the members of the object that a schema describes; none without a schema.
 */
export function namesOf(schema: ZodType | undefined): readonly string[] {
  if (schema === undefined) return [];
  const known = namesOfSchemas.get(schema);
  if (known) return known;
  const { properties } = toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const names = Object.keys(properties ?? {});
  namesOfSchemas.set(schema, names);
  return names;
}
