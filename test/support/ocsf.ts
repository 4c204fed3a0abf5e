import { readFileSync } from 'node:fs';

interface Attribute {
  readonly type: string;
  readonly object_type?: string;
  readonly is_array?: boolean;
  readonly required?: boolean;
  readonly enum?: readonly string[];
}
interface Structure {
  readonly uid?: number;
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly constraints?: { readonly at_least_one?: readonly string[] };
}

/**
 * The classes and objects of OCSF (Open Cybersecurity Schema Framework) that the service uses, with
 * all their attributes. They come from https://schema.ocsf.io/1.8.0/export/v2/schema. An attribute
 * is a fault if the file does not have its object type.
 */
const SCHEMA = JSON.parse(readFileSync('test/vectors/ocsf/schema-1.8.0.json', 'utf8')) as {
  readonly version: string;
  readonly classes: Readonly<Record<string, Structure>>;
  readonly objects: Readonly<Record<string, Structure>>;
};

type Document = Readonly<Record<string, unknown>>;

/**
 * Returns the faults of an OCSF event: everything that the schema does not allow or that it misses.
 */
export function ocsfFaults(document: Document): string[] {
  const found = Object.values(SCHEMA.classes).find(({ uid }) => uid === document['class_uid']);
  if (!found) return [`unknown class ${String(document['class_uid'])}`];
  const type = Number(document['class_uid']) * 100 + Number(document['activity_id']);
  return [
    ...(document['type_uid'] === type ? [] : ['type_uid']),
    ...faultsOf(document, found, 'event'),
  ];
}

function faultsOf(
  document: Document,
  { attributes, constraints }: Structure,
  at: string,
): string[] {
  const oneOf = constraints?.at_least_one ?? [];
  return [
    ...Object.entries(attributes)
      .filter(([name, { required }]) => required === true && document[name] === undefined)
      .map(([name]) => `${at}.${name} is missing`),
    ...(oneOf.length > 0 && oneOf.every((name) => document[name] === undefined)
      ? [`${at} has none of ${oneOf.join(', ')}`]
      : []),
    ...Object.entries(document).flatMap(([name, value]) =>
      valueFaults(value, attributes[name], `${at}.${name}`),
    ),
  ];
}

function valueFaults(value: unknown, attribute: Attribute | undefined, at: string): string[] {
  if (!attribute) return [`${at} is unknown`];
  const { type, object_type: objectType, enum: allowed } = attribute;
  if (type === 'object_t') {
    if (typeof value !== 'object' || value === null) return [`${at} is no object`];
    if (objectType === 'object') return [];
    const structure = SCHEMA.objects[objectType ?? ''];
    return structure ? faultsOf(value as Document, structure, at) : [`${at} is not in the file`];
  }
  if (attribute.is_array === true) return [`${at} is no array`];
  const isNumber = /^(integer|long|timestamp)_t$/.test(type);
  const fits = isNumber ? Number.isSafeInteger(value) : typeof value === 'string' && value !== '';
  return fits && (allowed?.includes(String(value)) ?? true) ? [] : [`${at}: ${String(value)}`];
}
