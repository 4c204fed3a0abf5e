import type { z } from 'zod';

/** The environment as plain strings; an empty string counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The use of a key in AWS KMS, which decides the type of the key. */
export type KmsKeyUse = 'ES256' | 'RS256' | 'Ed25519' | 'Ed25519 or ES256' | 'HMAC' | 'data keys';

/** A row of the table of settings: a variable with its meaning, and a schema with the default. */
export class Variable<Shape extends z.ZodType = z.ZodType> {
  /** The meaning of the variable, for the reference for operators. */
  meaning = '';
  /** The effect of an unset variable, if the default of the shape does not say it. */
  unset: string | undefined;

  constructor(
    readonly name: string,
    readonly shape: Shape,
    /** True if a person who reads the value could act as this service or as one of its users. */
    readonly isSecret: boolean,
    /** The use of the keys in AWS KMS that the variable names; undefined for any other variable. */
    readonly kmsUse: KmsKeyUse | undefined,
  ) {}

  means(meaning: string): this {
    this.meaning = meaning;
    return this;
  }

  whenUnset(effect: string): this {
    this.unset = effect;
    return this;
  }
}

/** Makes the row of a variable whose value may be shown. */
export const variable = <Shape extends z.ZodType>(name: string, shape: Shape) =>
  new Variable(name, shape, false, undefined);

/** Declares a variable of the configuration whose value is a secret. */
export const secret = <Shape extends z.ZodType>(name: string, shape: Shape) =>
  new Variable(name, shape, true, undefined);

/** Declares a variable of the configuration that names keys in AWS KMS. */
export const kmsKey = <Shape extends z.ZodType>(use: KmsKeyUse, name: string, shape: Shape) =>
  new Variable(name, shape, false, use);

/** A tree of variables. It is nested in the same way as the configuration that is read from it. */
export interface Table {
  readonly [key: string]: Variable | Table;
}

/** A type whose members cannot be changed, at any depth. */
export type Frozen<T> =
  T extends ReadonlySet<infer Item>
    ? ReadonlySet<Item>
    : T extends readonly (infer Item)[]
      ? readonly Item[]
      : T extends object
        ? { readonly [Key in keyof T]: Frozen<T[Key]> }
        : T;

/** The values of a table, nested as the table is. */
export type Values<T> = {
  readonly [Key in keyof T]: T[Key] extends Variable<infer Shape>
    ? Frozen<z.output<Shape>>
    : Values<T[Key]>;
};

/** Lists the rows of a table and of its nested tables, in their order. */
export function rowsOf(table: Table): Variable[] {
  return Object.values(table).flatMap((node) => (node instanceof Variable ? [node] : rowsOf(node)));
}

/** Returns the value of one variable; undefined if it is malformed, or unset without a default. */
export function valueOf<Shape extends z.ZodType>(
  { name, shape }: Variable<Shape>,
  environment: Environment,
): z.output<Shape> | undefined {
  return shape.safeParse(environment[name]).data;
}

/**
 * Reads the variables of a table. A problem is a line with the name of the variable, and never its
 * value. If there is a problem, all values are undefined.
 */
export function readTable<T extends Table>(
  table: T,
  environment: Environment,
  prefix = '',
): { readonly values: Values<T> | undefined; readonly problems: readonly string[] } {
  const problems = new Set<string>();
  const read = (node: Variable | Table): unknown => {
    if (!(node instanceof Variable)) {
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
