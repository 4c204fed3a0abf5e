import {
  attribute,
  complex,
  list,
  readOnly,
  reference,
  text,
  type Attribute,
} from './attribute.js';

/**
 * The core User attributes (RFC 7643 §4.1), with `externalId` (§3.1), which every client writes.
 */
export const USER_ATTRIBUTES: readonly Attribute[] = [
  text('userName', 'The name by which the identity provider knows the user, often an address.', {
    required: true,
    uniqueness: 'server',
  }),
  text('externalId', "The provisioning client's own identifier of the user.", { caseExact: true }),
  complex('name', "The parts of the user's name.", [
    text('formatted', 'The full name, formatted for display.'),
    text('familyName', 'The family name, or last name.'),
    text('givenName', 'The given name, or first name.'),
    text('middleName', 'The middle names.'),
    text('honorificPrefix', 'The title before the name, such as "Ms.".'),
    text('honorificSuffix', 'The suffix after the name, such as "III".'),
  ]),
  text('displayName', 'The name of the user, to be shown to people.'),
  text('nickName', 'The casual name of the user.'),
  reference('profileUrl', "The address of the user's online profile.", ['external']),
  text('title', 'The title of the user, such as "Vice President".'),
  text('userType', 'The relationship between the organization and the user.'),
  text('preferredLanguage', 'The preferred languages, as in the header Accept-Language.'),
  text('locale', 'The location by which numbers and dates are formatted, such as "en-US".'),
  text('timezone', 'The time zone in the IANA database, such as "America/Los_Angeles".'),
  attribute('boolean', 'active', 'Whether the user may sign in. False ends everything they hold.'),
  text('password', 'Accepted and dropped: no user signs in here with a password.', {
    caseExact: true,
    mutability: 'writeOnly',
    returned: 'never',
  }),
  list('emails', 'E-mail addresses.', text('value', 'The e-mail address.'), [
    'work',
    'home',
    'other',
  ]),
  list('phoneNumbers', 'Phone numbers.', text('value', 'The phone number.'), [
    'work',
    'home',
    'mobile',
    'fax',
    'pager',
    'other',
  ]),
  list('ims', 'Instant messaging addresses.', text('value', 'The address.')),
  list(
    'photos',
    'Addresses of photos.',
    reference('value', 'The address of the photo.', ['external']),
    ['photo', 'thumbnail'],
  ),
  complex(
    'addresses',
    'Postal addresses.',
    [
      text('formatted', 'The full address, formatted for display.'),
      text('streetAddress', 'The street, house number and what else stands in the street line.'),
      text('locality', 'The city.'),
      text('region', 'The state or region.'),
      text('postalCode', 'The postal code.'),
      text('country', 'The country, in the two letters of ISO 3166-1.'),
      text('type', 'What the address is for.', { canonicalValues: ['work', 'home', 'other'] }),
      attribute('boolean', 'primary', 'Whether this is the preferred value; true at most once.'),
    ],
    { multiValued: true },
  ),
  readOnly(
    complex(
      'groups',
      'The groups of the user. They change by changing the members of a group.',
      [
        text('value', 'The id of the group.', { caseExact: true }),
        reference('$ref', 'The address of the group.', ['Group']),
        text('display', 'The name of the group.'),
        text('type', 'Whether the membership is direct.', { canonicalValues: ['direct'] }),
      ],
      { multiValued: true },
    ),
  ),
  list('entitlements', 'Entitlements.', text('value', 'The entitlement.')),
  list('roles', 'Roles.', text('value', 'The role.')),
  list(
    'x509Certificates',
    'X.509 certificates.',
    attribute('binary', 'value', 'The DER of the certificate in base64.', { caseExact: true }),
  ),
];

/** The attributes of the enterprise extension (RFC 7643 §4.3). */
export const ENTERPRISE_ATTRIBUTES: readonly Attribute[] = [
  text('employeeNumber', 'The identifier the organization gave the user.'),
  text('costCenter', 'The name of the cost center.'),
  text('organization', 'The name of the organization.'),
  text('division', 'The name of the division.'),
  text('department', 'The name of the department.'),
  complex('manager', "The user's manager.", [
    text('value', 'The id of the manager.', { caseExact: true }),
    reference('$ref', 'The address of the manager.', ['User'], { mutability: 'readOnly' }),
    text('displayName', "The manager's name.", { mutability: 'readOnly' }),
  ]),
];

/** The core Group attributes (RFC 7643 §4.2), with `externalId` (§3.1). */
export const GROUP_ATTRIBUTES: readonly Attribute[] = [
  text('displayName', 'The name of the group.', { required: true, uniqueness: 'server' }),
  text('externalId', "The provisioning client's own identifier of the group.", { caseExact: true }),
  complex(
    'members',
    'The users in the group.',
    [
      text('value', 'The id of the member.', { caseExact: true, mutability: 'immutable' }),
      reference('$ref', 'The address of the member.', ['User'], { mutability: 'immutable' }),
      text('type', 'What the member is.', { canonicalValues: ['User'], mutability: 'immutable' }),
      text('display', 'The name of the member.', { mutability: 'readOnly' }),
    ],
    { multiValued: true },
  ),
];
