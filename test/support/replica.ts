import { startTestApp, type TestAppOptions } from './app.js';

// A script for runScript. It starts the test application in a process of its own, and prints its
// URL. The process ends when standard input ends.
const argument: ReplicaArgument = JSON.parse(process.argv[2] ?? '');
const app = await startTestApp(argument);
const answer: ReplicaAnswer = { baseUrl: app.baseUrl };
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.stdin.on('end', () => void app.close()).resume();

/** The argument of the script. */
export interface ReplicaArgument extends Pick<TestAppOptions, 'environment'> {
  readonly database: { readonly url: string };
}

/** The output of the script. */
export interface ReplicaAnswer {
  readonly baseUrl: string;
}
