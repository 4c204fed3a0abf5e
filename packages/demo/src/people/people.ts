/** A person whom the demo has prepared, so that each part of the tour works at once. */
export interface ReadyPerson {
  /**
   * The e-mail address. The identity provider of the demo derives the name of the person from it:
   * `erin.engineer@…` is Erin Engineer.
   */
  readonly email: string;
  readonly name: string;
  /** The purpose of the person in the tour, in a few words. */
  readonly role: string;
  /** True if the demo enrolls a credential of its software key for the person. */
  readonly hasKey: boolean;
}

const DOMAIN = 'acme.example';

/**
 * The prepared people. Each property is named after the role that the person has in the tour. All
 * people belong to the organization of their e-mail domain.
 */
export const READY = {
  engineer: {
    email: `erin.engineer@${DOMAIN}`,
    name: 'Erin Engineer',
    role: 'an engineer, with a key',
    hasKey: true,
  },
  admin: {
    email: `alex.admin@${DOMAIN}`,
    name: 'Alex Admin',
    role: 'the admin of the organization, with a key',
    hasKey: true,
  },
  leaver: {
    email: `lee.leaver@${DOMAIN}`,
    name: 'Lee Leaver',
    role: 'who is about to leave, with a key',
    hasKey: true,
  },
  newcomer: {
    email: `nora.newcomer@${DOMAIN}`,
    name: 'Nora Newcomer',
    role: 'who has no key yet',
    hasKey: false,
  },
} as const satisfies Record<string, ReadyPerson>;

/** The prepared people, in the order in which pages show them. */
export const READY_PEOPLE: readonly ReadyPerson[] = Object.values(READY);
