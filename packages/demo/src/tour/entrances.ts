import { READY, type ReadyPerson } from '../people/people.js';
import type { ReadyTour } from './tour.js';

/** One step of a tour: a sentence, and a command to paste or links to pages of the service. */
export interface TourStep {
  readonly title: string;
  readonly text: string;
  readonly command?: string;
  readonly links?: readonly TourLink[];
  /** The sentence after the command or the links. */
  readonly after?: string;
}

/** A link to a page of the service or of the demo. */
export interface TourLink {
  readonly href: string;
  readonly text: string;
}

/** A tour for one kind of visitor. */
export interface Entrance {
  readonly slug: string;
  readonly name: string;
  readonly lead: string;
  readonly steps: readonly TourStep[];
}

/** The tours, in the order in which the first page lists them. */
export const ENTRANCES = [
  {
    slug: 'engineer',
    name: 'Engineer',
    lead: 'Log in once with a key, and ssh and applications just work.',
    stepsOf: engineerSteps,
  },
  {
    slug: 'admin',
    name: 'Admin',
    lead: 'See who has which keys, connect the directory, and watch a person leave.',
    stepsOf: adminSteps,
  },
  {
    slug: 'operator',
    name: 'Operator',
    lead: 'Health, metrics, the description of the API, and what SSH servers trust.',
    stepsOf: operatorSteps,
  },
] as const;

/** Returns the tour with a slug; undefined if no tour has it. */
export function entrance(slug: string, tour: ReadyTour): Entrance | undefined {
  const found = ENTRANCES.find((one) => one.slug === slug);
  if (!found) return undefined;
  const { name, lead, stepsOf } = found;
  return { slug, name, lead, steps: stepsOf(tour) };
}

/**
 * Returns the link that signs a person in at the demo's identity provider. After the touch of the
 * key, the given page opens.
 */
export function signInLink(
  { provider }: Pick<ReadyTour, 'provider'>,
  { email, name }: ReadyPerson,
  redirectTo: string,
): TourLink {
  const query = new URLSearchParams({ provider, login_hint: email, redirect_to: redirectTo });
  return { href: `/login?${query.toString()}`, text: `Continue as ${name}` };
}

function engineerSteps(tour: ReadyTour): TourStep[] {
  const { commands, applicationUrl } = tour;
  return [
    {
      title: 'Log the command line in',
      text: 'Paste this into a second terminal. A browser opens; open the printed address yourself where it does not.',
      command: commands.logIn,
      after: `In the browser choose “${READY.engineer.email}” above the page: the software key of the demo answers for the touch.`,
    },
    sshStep(tour),
    {
      title: 'See what was issued in your name',
      text: 'Keys, sessions, certificates and applications of your own, each with a button that ends it.',
      links: [
        signInLink(tour, READY.engineer, '/account'),
        { href: '/account/credentials', text: 'Your credentials' },
      ],
    },
    {
      title: 'Sign in to an application',
      text: 'It has no passwords. It shows who is signed in, and the claims that it got.',
      links: [{ href: applicationUrl, text: 'Open the demo application' }],
    },
    {
      title: 'Enroll a key',
      text: `${READY.newcomer.name} has no key yet. Untick the software key above the page to use a real YubiKey.`,
      links: [signInLink(tour, READY.newcomer, '/account')],
    },
  ];
}

function sshStep({ missingPrograms, commands }: ReadyTour): TourStep {
  const title = 'Log in to the demo’s sshd';
  if (missingPrograms.length > 0) {
    const text = `This machine lacks ${missingPrograms.join(', ')}, so there is no server to log in to. Install OpenSSH (openssh-server, openssh-client), and start the demo again.`;
    return { title, text };
  }
  return {
    title,
    text: 'ssh asks svc for a certificate; the server trusts the authority that signed it and holds no key of yours.',
    command: commands.ssh,
    after:
      'The server shows the certificate and closes: it gives no shell. Your own ~/.ssh is not touched; at work “svc setup ssh” does this once.',
  };
}

function adminSteps(tour: ReadyTour): TourStep[] {
  return [
    {
      title: 'Log in as the admin',
      text: 'The first person of an organization is its admin. Press “Use your security key” on the next page.',
      links: [signInLink(tour, READY.admin, '/admin')],
    },
    {
      title: 'Who has which keys?',
      text: 'Members with their keys, sessions, certificates and applications; each act says what will end.',
      links: [{ href: '/admin/members', text: 'Members' }],
    },
    {
      title: 'Connect the directory',
      text: 'The identity provider of a company creates and deletes people by SCIM. Its token is here.',
      links: [{ href: '/admin/scim-tokens', text: 'SCIM tokens' }],
    },
    {
      title: 'A person leaves',
      text: `Press one button, and see the session and the certificate of ${READY.leaver.name} end, and the session that an application keeps by itself.`,
      links: [{ href: '/demo/leaver', text: 'Watch it happen' }],
    },
    {
      title: 'Who did what?',
      text: 'Every login, credential and act is an event, with its address and its request.',
      links: [{ href: '/admin/audit', text: 'Audit log' }],
    },
  ];
}

function operatorSteps({ commands }: ReadyTour): TourStep[] {
  return [
    {
      title: 'Is it well?',
      text: 'Liveness, and readiness with the database: for a load balancer or Kubernetes.',
      links: [
        { href: '/health', text: 'Health' },
        { href: '/health/ready', text: 'Readiness' },
      ],
    },
    {
      title: 'Measure it',
      text: 'Prometheus reads the counters with a token (SVC_METRICS_BEARER_TOKEN). The token of the demo is in a file.',
      command: commands.metrics,
      links: [{ href: '/metrics', text: 'Metrics, which refuse you without the token' }],
    },
    {
      title: 'Read the API',
      text: 'Every route, generated from the schemas that validate its requests.',
      links: [
        { href: '/docs/api', text: 'The API' },
        { href: '/openapi.json', text: 'OpenAPI document' },
      ],
    },
    {
      title: 'Let a server trust it',
      text: 'One command on a server of yours. It fetches the authority, and the list of revoked certificates every minute.',
      links: [
        { href: '/install-host.sh', text: 'The script for servers' },
        { href: '/v1/credentials/ssh/ca', text: 'The authority' },
      ],
    },
    {
      title: 'See the leaver’s access end',
      text: 'The page tries the session, the certificate and the application again and again, as your own checks would. A logout token ends the session of the application.',
      links: [{ href: '/demo/leaver', text: 'A person leaves' }],
    },
  ];
}
