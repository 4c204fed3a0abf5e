import type { FailoverWorld } from './failover-world.js';
import { isDoneOn } from './leavings.js';
import type { AnsweredCertificate } from './ledger.js';
import type { Person, Way } from './person.js';
import type { Happened, Leaver, RoundReport } from './round.js';

/** Every way in which a person with access can use a credential. */
const ALL_WAYS: readonly Way[] = [
  'session',
  'key alone: browser',
  'key alone: FIDO2 grant',
  'token of svc-cli',
  'token: userinfo',
  'token: introspection',
  'certificate',
];

/**
 * Makes the checks of a round after the database has changed. They try every certificate, session
 * and token from before the change. Returns the report of the round.
 */
export async function tried(
  world: FailoverWorld,
  happened: Happened,
): Promise<Omit<RoundReport, 'undone'>> {
  const { scenario, began, changed, leavers } = happened;
  await world.proof.download();
  const answered = world.ledger.since(began).filter(({ at }) => at < changed);
  const lost = await lostOf(world, answered);
  const violations = [
    ...(await certificatesTold(world, happened, answered, lost)),
    ...(await leaversTold(leavers)),
    ...(scenario.isLossy
      ? await newLoginIsDue(world, happened)
      : await sessionsGoOn(world, happened)),
  ];
  const endedAgain = await endedOf(world, leavers);
  if (scenario.losesMemory !== true && endedAgain < leavers.length)
    violations.push(`${leavers.length - endedAgain} answered acts are undone for good`);
  if (endedAgain === leavers.length) violations.push(...(await noneComesBack(leavers)));
  const equalSerials = world.ledger.equalSerials.length - happened.equalSerials;
  if (equalSerials > 0) violations.push(`${equalSerials} serials were given out twice`);
  violations.push(...unexpectedAnswers(world, happened));
  return {
    scenario: scenario.name,
    answered: answered.length,
    lost: lost.length,
    equalSerials,
    endedAgain,
    pause: longestPause(world, began),
    refusals: [...world.load.refusals].map(([what, count]) => `${count} × ${what}`).join(', '),
    violations,
  };
}

/**
 * Returns the certificates for which the present primary has no row, because the failover lost it.
 */
async function lostOf(
  world: FailoverWorld,
  answered: readonly AnsweredCertificate[],
): Promise<AnsweredCertificate[]> {
  const rows = await world.cluster.primary.query<{ serial: string }>(
    'SELECT serial::text FROM ssh_certificates WHERE serial = ANY ($1::bigint[])',
    [answered.map(({ serial }) => serial)],
  );
  const kept = new Set(rows.map(({ serial }) => serial));
  return answered.filter(({ serial }) => !kept.has(serial));
}

/**
 * Tries certificates at `sshd`: it must refuse each one that the failover lost, and accept one that
 * was issued after the change. Returns the violations.
 */
async function certificatesTold(
  { proof, ledger }: FailoverWorld,
  { scenario, changed }: Happened,
  answered: readonly AnsweredCertificate[],
  lost: readonly AnsweredCertificate[],
): Promise<string[]> {
  const violations: string[] = [];
  if (scenario.isLossy === (lost.length === 0))
    violations.push(`${lost.length} of ${answered.length} certificates have no row`);
  const lines = lost.map(({ certificate }) => certificate);
  const unlisted = await proof.unlisted(lines);
  if (unlisted.length > 0)
    violations.push(`${unlisted.length} lost certificates are not in the list`);
  else if (await proof.acceptsAny(lines)) violations.push('sshd accepts a lost certificate');
  const after = ledger.since(changed).at(-1);
  if (!after || !(await proof.acceptsAny([after.certificate])))
    violations.push('sshd refuses a certificate that was issued after the change');
  return violations;
}

async function leaversTold(leavers: readonly Leaver[]): Promise<string[]> {
  const violations: string[] = [];
  for (const { leaving, person } of leavers) {
    const ways = await person.openWays();
    if (ways.length > 0) violations.push(`after ${leaving.name}: ${ways.join(', ')}`);
  }
  return violations;
}

/**
 * Checks a round that lost commits: every earlier session and token must be refused. After a new
 * login at the provider and with the key, the person must get everything again. Returns the
 * violations.
 */
async function newLoginIsDue(world: FailoverWorld, { stays }: Happened): Promise<string[]> {
  const violations: string[] = [];
  const before = await stays.openWays();
  if (before.length > 0) violations.push(`without a new login: ${before.join(', ')}`);
  const login = await stays.logIn();
  if (login.status !== 200) return [...violations, `a login with both: ${login.status}`];
  await stays.equip();
  await world.proof.download();
  return [...violations, ...closedFor(await stays.openWays(), 'after a login with both')];
}

/**
 * Checks a round without lost commits: every session and token still works, and no person had to
 * log in again. Returns the violations.
 */
async function sessionsGoOn(world: FailoverWorld, { stays, logins }: Happened): Promise<string[]> {
  const violations = closedFor(await stays.openWays(), 'of a person who stayed');
  const again = world.load.logins - logins;
  return again === 0 ? violations : [...violations, `${again} people had to log in again`];
}

function closedFor(open: readonly Way[], when: string): string[] {
  const closed = ALL_WAYS.filter((way) => !open.includes(way));
  return closed.length === 0 ? [] : [`closed ${when}: ${closed.join(', ')}`];
}

/** Counts the people whose access is ended at the current primary. */
async function endedOf(world: FailoverWorld, leavers: readonly Leaver[]): Promise<number> {
  const { primary } = world.cluster;
  let count = 0;
  for (const { leaving, person } of leavers)
    if (await isDoneOn(primary, leaving, person)) count += 1;
  return count;
}

/**
 * Checks that a person without access cannot log in with the old key, even after a sign-in at the
 * identity provider. Returns the violations.
 */
async function noneComesBack(leavers: readonly Leaver[]): Promise<string[]> {
  const violations: string[] = [];
  for (const { leaving, person } of leavers)
    if (await comesBack(person)) violations.push(`after ${leaving.name}: the provider and the key`);
  return violations;
}

async function comesBack(person: Person): Promise<boolean> {
  // `logIn` throws if the service offers no key for the login
  const { status } = await person.logIn().catch(() => ({ status: 0 }));
  return status === 200;
}

/**
 * Returns the unexpected responses that the load got. While the database is unreachable, a request
 * gets 503 or must log in. A proxy answers 502 for a replica that has ended.
 */
function unexpectedAnswers({ load }: FailoverWorld, { scenario }: Happened): string[] {
  // A login is also refused if a confirmation of the server happens while it is under way. The next
  // login succeeds, as later checks show.
  const expected =
    scenario.losesMemory === true
      ? /^(?:login )?(?:401|403|502|503)\b/
      : /^(?:login )?(?:401|403|503)\b/;
  return [...load.refusals.keys()]
    .filter((what) => !expected.test(what))
    .map((what) => `the people of the load got: ${what}`);
}

function longestPause({ ledger }: FailoverWorld, began: number): number {
  const times = ledger.since(began).map(({ at }) => at);
  const gaps = times.map((at, index) => at - (times[index - 1] ?? at));
  return Math.round(Math.max(0, ...gaps));
}
