import { sortArguments, WrongArguments } from '@svc/arguments';

/** The text that `--help` and a wrong argument print. */
export const USAGE = `Usage: npm run demo -- [options]

Starts the service with a database, an identity provider and a software security key of its own, runs a scenario
through its HTTP interface, and keeps serving. No configuration, hardware or network is needed.

  --json                       print one JSON document of the results, and nothing else
  --exit                       end after the scenario
  --port N                     listen on this port of localhost (3000), 0 for a free one
  --attestation-root FILE.pem  also trust this root, for an outside software key
  --help                       print this

The environment variables of the service override the demo's own settings. Exit status: 0 when every step succeeded, 1
when one failed or the demo cannot start, 2 for a wrong argument.
`;

/** The options of the command line. */
export interface DemoArguments {
  readonly json: boolean;
  readonly exit: boolean;
  readonly help: boolean;
  /** The port to listen on: 0 for a free port; undefined for the port of the environment. */
  readonly port: number | undefined;
  /**
   * The PEM file of an additional attestation root: the demo then accepts the keys below it too.
   */
  readonly attestationRoot: string | undefined;
}

const NAMES = {
  flags: ['json', 'exit', 'help'],
  values: ['port', 'attestation-root'],
  refusesDashes: true,
};

/**
 * Parses the command line.
 *
 * @throws WrongArguments for an unknown argument, a missing value or an invalid port
 */
export function readArguments(argv: readonly string[]): DemoArguments {
  const { has, value } = sortArguments(argv, NAMES);
  const port = value('port');
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)) {
    throw new WrongArguments('--port must be a number between 0 and 65535');
  }
  return {
    json: has('json'),
    exit: has('exit'),
    help: has('help'),
    port: port === undefined ? undefined : Number(port),
    attestationRoot: value('attestation-root'),
  };
}
