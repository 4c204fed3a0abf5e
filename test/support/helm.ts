import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';

/**
 * The folder of the programs `helm` and `check-manifests`. `.ci/run` compiles both from `.ci/helm`.
 */
export const HELM_PROGRAMS = '/opt/svc-test/helm';

const CHART = resolve(import.meta.dirname, '../../helm');

/** The oldest version of Kubernetes that the chart supports, for which helm renders it. */
const KUBERNETES = '--kube-version=1.27.0';

/** What a program printed, and its exit status. */
export interface Output {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A variable of a container, with its value or the source of the value. */
export interface ContainerVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

/** The parts of a container that tests read. */
export interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly env?: readonly ContainerVariable[];
  readonly envFrom?: readonly object[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext?: object;
}

/** The parts of a pod that tests read. */
export interface PodSpec {
  readonly containers: readonly [Container, ...Container[]];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly topologySpreadConstraints?: readonly object[];
}

/** An object of Kubernetes as the chart makes it. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> };
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly metadata: { readonly annotations?: Record<string, string> };
      readonly spec: PodSpec;
    };
  } & PodSpec &
    Record<string, unknown>;
}

/**
 * Runs `helm lint` or `helm template`, without the user's settings and for the oldest Kubernetes
 * that the chart supports. The input is for `--values -`.
 */
export function helm(args: readonly string[], input = ''): Promise<Output> {
  return run(join(HELM_PROGRAMS, 'helm'), [...args, KUBERNETES], input);
}

/**
 * Checks YAML documents against the types of Kubernetes, the Prometheus Operator and the Gateway
 * API. The output is one line of JSON for each good document.
 */
export function checkManifests(documents: string): Promise<Output> {
  return run(join(HELM_PROGRAMS, 'check-manifests'), [], documents);
}

/**
 * Renders the chart as the release `svc` with the values of `helm/ci/minimal-values.yaml` and those
 * given, and returns what helm printed. Text counts as YAML.
 */
export function template(values: object | string = {}, ...options: string[]): Promise<Output> {
  const minimal = join(CHART, 'ci/minimal-values.yaml');
  const args = ['template', 'svc', CHART, '--values', minimal, '--values', '-', ...options];
  return helm(args, typeof values === 'string' ? values : JSON.stringify(values));
}

/**
 * Renders the chart as {@link template} does, and returns its objects.
 * @throws Error if helm refuses the values, or Kubernetes does not know an object
 */
export async function render(
  values: object | string = {},
  ...options: string[]
): Promise<Manifest[]> {
  const rendered = await template(values, ...options);
  if (rendered.status !== 0) throw new Error(rendered.stderr);
  return manifestsOf(rendered.stdout);
}

/**
 * Returns the objects of YAML documents.
 * @throws Error if Kubernetes does not know one of them
 */
export async function manifestsOf(documents: string): Promise<Manifest[]> {
  const checked = await checkManifests(documents);
  if (checked.status !== 0) throw new Error(checked.stderr);
  const lines = checked.stdout.trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Manifest);
}

/**
 * Returns the one object of a kind.
 * @throws Error if there is none, or another one
 */
export function only(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, another] = manifests.filter((manifest) => manifest.kind === kind);
  if (found === undefined || another !== undefined) throw new Error(`expected one ${kind}`);
  return found;
}

function run(program: string, args: readonly string[], input: string): Promise<Output> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', KUBECONFIG: '/dev/null' };
  return new Promise((done) => {
    const child = execFile(program, args, { env, cwd: CHART }, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      done({ status, stdout, stderr });
    });
    child.stdin?.on('error', () => undefined); // the program may end without reading its input
    child.stdin?.end(input);
  });
}
