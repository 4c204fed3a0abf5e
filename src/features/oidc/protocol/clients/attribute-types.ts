/**
 * The object identifiers of the attribute types in a distinguished name, such as `cn`, by their
 * names in lower case. The names are those of RFC 4514 §3 and RFC 4519, and those that OpenSSL and
 * Java print.
 */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['cn', '2.5.4.3'],
  ['commonname', '2.5.4.3'],
  ['sn', '2.5.4.4'],
  ['surname', '2.5.4.4'],
  ['serialnumber', '2.5.4.5'],
  ['c', '2.5.4.6'],
  ['countryname', '2.5.4.6'],
  ['l', '2.5.4.7'],
  ['localityname', '2.5.4.7'],
  ['st', '2.5.4.8'],
  ['s', '2.5.4.8'],
  ['stateorprovincename', '2.5.4.8'],
  ['street', '2.5.4.9'],
  ['streetaddress', '2.5.4.9'],
  ['o', '2.5.4.10'],
  ['organizationname', '2.5.4.10'],
  ['ou', '2.5.4.11'],
  ['organizationalunitname', '2.5.4.11'],
  ['title', '2.5.4.12'],
  ['t', '2.5.4.12'],
  ['description', '2.5.4.13'],
  ['businesscategory', '2.5.4.15'],
  ['postalcode', '2.5.4.17'],
  ['name', '2.5.4.41'],
  ['givenname', '2.5.4.42'],
  ['gn', '2.5.4.42'],
  ['initials', '2.5.4.43'],
  ['generationqualifier', '2.5.4.44'],
  ['dnqualifier', '2.5.4.46'],
  ['pseudonym', '2.5.4.65'],
  ['organizationidentifier', '2.5.4.97'],
  ['uid', '0.9.2342.19200300.100.1.1'],
  ['userid', '0.9.2342.19200300.100.1.1'],
  ['dc', '0.9.2342.19200300.100.1.25'],
  ['domaincomponent', '0.9.2342.19200300.100.1.25'],
  ['emailaddress', '1.2.840.113549.1.9.1'],
  ['email', '1.2.840.113549.1.9.1'],
  ['e', '1.2.840.113549.1.9.1'],
  ['jurisdictionc', '1.3.6.1.4.1.311.60.2.1.3'],
  ['jurisdictionst', '1.3.6.1.4.1.311.60.2.1.2'],
  ['jurisdictionl', '1.3.6.1.4.1.311.60.2.1.1'],
]);

/**
 * Returns the object identifier of an attribute type of a distinguished name. The type may be
 * written as a name, as dotted numbers, or as dotted numbers after `OID.`. The case of letters does
 * not matter.
 *
 * @returns undefined for an unknown name
 */
export function attributeType(written: string): string | undefined {
  const name = written.trim().toLowerCase();
  const oid = /^(?:oid\.)?(\d+(?:\.\d+)+)$/.exec(name)?.[1];
  return oid ?? TYPES.get(name);
}
