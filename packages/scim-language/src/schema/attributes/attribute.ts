/** The data types of RFC 7643 §2.3 that the schemas use. */
export type AttributeType =
  'string' | 'boolean' | 'integer' | 'dateTime' | 'binary' | 'reference' | 'complex';

/** The characteristics of an attribute (RFC 7643 §7). */
export interface Attribute {
  readonly name: string;
  readonly type: AttributeType;
  readonly multiValued: boolean;
  readonly description: string;
  readonly required: boolean;
  readonly caseExact: boolean;
  readonly mutability: 'readOnly' | 'readWrite' | 'immutable' | 'writeOnly';
  readonly returned: 'always' | 'never' | 'default' | 'request';
  readonly uniqueness: 'none' | 'server' | 'global';
  readonly canonicalValues?: readonly string[];
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly Attribute[];
}

type Traits = Partial<Omit<Attribute, 'name' | 'description' | 'type'>>;

const DEFAULTS = {
  multiValued: false,
  required: false,
  caseExact: false,
  mutability: 'readWrite',
  returned: 'default',
  uniqueness: 'none',
} as const;

/**
 * Makes an attribute, with the defaults of RFC 7643 §2.2 for characteristics that are not given.
 */
export function attribute(
  type: AttributeType,
  name: string,
  description: string,
  traits: Traits = {},
): Attribute {
  return { ...DEFAULTS, name, type, description, ...traits };
}

/** Makes a string attribute. Its values compare without case unless the traits set `caseExact`. */
export function text(name: string, description: string, traits: Traits = {}): Attribute {
  return attribute('string', name, description, traits);
}

/** Makes a reference attribute, whose values compare with case (RFC 7643 §2.3.7). */
export function reference(
  name: string,
  description: string,
  referenceTypes: readonly string[],
  traits: Traits = {},
): Attribute {
  return attribute('reference', name, description, { caseExact: true, referenceTypes, ...traits });
}

/** Makes a complex attribute with one value. */
export function complex(
  name: string,
  description: string,
  subAttributes: readonly Attribute[],
  traits: Traits = {},
): Attribute {
  return attribute('complex', name, description, { subAttributes, ...traits });
}

/**
 * Makes a multi-valued attribute. Its elements have the given `value`, and the other sub-attributes
 * of RFC 7643 §2.4.
 */
export function list(
  name: string,
  description: string,
  value: Attribute,
  types?: readonly string[],
): Attribute {
  const type = text('type', 'What the value is for.', types ? { canonicalValues: types } : {});
  return complex(
    name,
    description,
    [
      value,
      text('display', 'A name for the value, to be shown to people.'),
      type,
      attribute('boolean', 'primary', 'Whether this is the preferred value; true at most once.'),
    ],
    { multiValued: true },
  );
}

/** Makes a copy of an attribute, with its sub-attributes, that clients cannot write. */
export function readOnly(writable: Attribute): Attribute {
  return {
    ...writable,
    mutability: 'readOnly',
    ...(writable.subAttributes && { subAttributes: writable.subAttributes.map(readOnly) }),
  };
}
