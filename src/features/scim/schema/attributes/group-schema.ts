import { complex, reference, text, type Attribute } from './attribute.js';

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
