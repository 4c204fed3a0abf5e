import { describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  findAttribute,
  GROUP_SCHEMA,
  GROUP_URN,
  RESOURCE_TYPE_URN,
  resourceTypeDocuments,
  SCHEMA_URN,
  schemaDocuments,
  SERVICE_PROVIDER_CONFIG_URN,
  USER_SCHEMA,
  USER_URN,
} from '@svc/scim-language';

const BASE = 'https://svc.example.com/scim/v2';

interface AttributeDocument {
  readonly name: string;
  readonly type: string;
  readonly subAttributes?: readonly AttributeDocument[];
  readonly [characteristic: string]: unknown;
}

const documents = schemaDocuments(BASE);
const attributesOf = (urn: string) =>
  (documents.find(({ id }) => id === urn)?.['attributes'] ?? []) as AttributeDocument[];
const attributeOf = (urn: string, name: string) =>
  attributesOf(urn).find((each) => each.name === name);

describe('/Schemas (RFC 7643 §7, §8.7)', () => {
  it('lists every schema with its address', () => {
    expect(documents.map(({ id }) => id)).toEqual([
      USER_URN,
      ENTERPRISE_URN,
      GROUP_URN,
      SERVICE_PROVIDER_CONFIG_URN,
      RESOURCE_TYPE_URN,
      SCHEMA_URN,
    ]);
    expect(documents[0]).toMatchObject({
      schemas: [SCHEMA_URN],
      meta: { resourceType: 'Schema', location: `${BASE}/Schemas/${USER_URN}` },
    });
  });

  it('§4.1: lists every attribute of a User', () => {
    expect(attributesOf(USER_URN).map(({ name }) => name)).toEqual(
      `userName externalId name displayName nickName profileUrl title userType preferredLanguage locale timezone
       active password emails phoneNumbers ims photos addresses groups entitlements roles x509Certificates`.split(
        /\s+/,
      ),
    );
    const names = (of: AttributeDocument | undefined) => of?.subAttributes?.map(({ name }) => name);
    expect(names(attributeOf(USER_URN, 'name'))).toHaveLength(6);
    expect(names(attributeOf(USER_URN, 'emails'))).toEqual(['value', 'display', 'type', 'primary']);
    expect(names(attributeOf(ENTERPRISE_URN, 'manager'))).toEqual(['value', '$ref', 'displayName']);
  });

  it('states mutability, return and uniqueness of attributes', () => {
    expect(attributeOf(USER_URN, 'userName')).toMatchObject({
      required: true,
      caseExact: false,
      uniqueness: 'server',
    });
    expect(attributeOf(USER_URN, 'password')).toMatchObject({
      mutability: 'writeOnly',
      returned: 'never',
    });
    expect(attributeOf(USER_URN, 'groups')).toMatchObject({ mutability: 'readOnly' });
    expect(attributeOf(GROUP_URN, 'displayName')).toMatchObject({
      required: true,
      caseExact: false,
      uniqueness: 'server',
    });
    for (const urn of [USER_URN, GROUP_URN]) {
      expect(attributeOf(urn, 'externalId')).toMatchObject({ caseExact: true });
    }
  });

  it('§7: describes its own documents, attribute by attribute', () => {
    const described = attributeOf(SCHEMA_URN, 'attributes')?.subAttributes ?? [];
    const known = new Set(described.map(({ name }) => name));
    const check = (attribute: AttributeDocument) => {
      for (const name of Object.keys(attribute)) expect(known).toContain(name);
      attribute.subAttributes?.forEach(check);
    };
    for (const { id } of documents) attributesOf(id).forEach(check);
  });
});

describe('/ResourceTypes (RFC 7643 §6)', () => {
  it('lists users with the enterprise extension, and groups', () => {
    expect(resourceTypeDocuments(BASE)).toMatchObject([
      {
        id: 'User',
        endpoint: '/Users',
        schema: USER_URN,
        schemaExtensions: [{ schema: ENTERPRISE_URN, required: false }],
        meta: { location: `${BASE}/ResourceTypes/User` },
      },
      { id: 'Group', endpoint: '/Groups', schema: GROUP_URN, schemaExtensions: [] },
    ]);
  });
});

describe('attribute references', () => {
  it.each([
    ['USERNAME', 'userName'],
    [`${USER_URN.toUpperCase()}:Name.FAMILYNAME`, 'name.familyName'],
    ['employeenumber', `${ENTERPRISE_URN}:employeeNumber`],
    ['emails.$ref', undefined],
    ['manager.$REF', `${ENTERPRISE_URN}:manager.$ref`],
    [`${USER_URN}:employeeNumber`, undefined],
    [`${ENTERPRISE_URN}:userName`, undefined],
    [`${ENTERPRISE_URN}:id`, undefined],
    ['name.givenName.x', undefined],
    ['name.', undefined],
    ['.name', undefined],
    ['', undefined],
    ['__proto__', undefined],
    ['constructor', undefined],
    ['toString', undefined],
  ])('%s means %s', (name, path) => expect(findAttribute(USER_SCHEMA, name)?.path).toBe(path));

  it('belong to their resource', () => {
    expect(findAttribute(GROUP_SCHEMA, 'userName')).toBeUndefined();
    expect(findAttribute(GROUP_SCHEMA, 'members.value')?.path).toBe('members.value');
  });
});
