import type { z } from 'zod';

/** The use of a key in AWS KMS, which decides its type. */
export type KmsKeyUse = 'ES256' | 'RS256' | 'Ed25519 or ES256' | 'HMAC' | 'data keys';

interface Description {
  /** One sentence or more for the reference. */
  readonly meaning: string;
  /** The effect of leaving it out, if the default of the shape does not say it. */
  readonly unset?: string;
  /** The use of the keys in AWS KMS that the variable names. */
  readonly kmsUse?: KmsKeyUse;
}

/** A row of the table: a variable, and the shape of its value with the default. */
export interface Variable<Shape extends z.ZodType = z.ZodType> extends Description {
  readonly name: string;
  readonly shape: Shape;
  /** True if who reads the value could act as this service or one of its users. */
  readonly isSecret: boolean;
}

/** Variables by their place in the configuration. */
export interface Table {
  readonly [key: string]: Variable | Table;
}

type Frozen<T> =
  T extends Set<infer Item> ? ReadonlySet<Item> : T extends (infer Item)[] ? readonly Item[] : T;

/** The values of a table, each at the place of its variable. */
export type Values<T> = {
  readonly [Key in keyof T]: T[Key] extends Variable<infer Shape>
    ? Frozen<z.output<Shape>>
    : Values<T[Key]>;
};

/** Makes the row of a variable whose value may be shown. */
export function variable<Shape extends z.ZodType>(
  name: string,
  shape: Shape,
  description: Description,
): Variable<Shape> {
  return { name, shape, isSecret: false, ...description };
}

/** Makes the row of a variable whose value is a secret. */
export function secret<Shape extends z.ZodType>(
  name: string,
  shape: Shape,
  description: Description,
): Variable<Shape> {
  return { name, shape, isSecret: true, ...description };
}

function isVariable(node: Variable | Table): node is Variable {
  return typeof node.name === 'string';
}

/** Lists the rows of a table in their order. */
export function rowsOf(table: Table): Variable[] {
  return Object.values(table).flatMap((node) => (isVariable(node) ? [node] : rowsOf(node)));
}

/**
 * Reads the variables of a table. A problem is a line with the name of the variable, and never its
 * value. The values are undefined if there is a problem.
 */
export function readTable<T extends Table>(
  table: T,
  environment: Readonly<Record<string, string | undefined>>,
  prefix = '',
): { readonly values: Values<T> | undefined; readonly problems: readonly string[] } {
  const problems = new Set<string>();
  const read = (node: Variable | Table): unknown => {
    if (!isVariable(node)) {
      return Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, read(inner)]));
    }
    const { data, error } = node.shape.safeParse(environment[prefix + node.name]);
    for (const { code, message } of error?.issues ?? []) {
      const isMissing = code === 'invalid_type' && message.includes('received undefined');
      problems.add(`${prefix}${node.name}: ${isMissing ? 'is required' : message}`);
    }
    return data;
  };
  const values = read(table) as Values<T>;
  return { values: problems.size === 0 ? values : undefined, problems: [...problems] };
}
