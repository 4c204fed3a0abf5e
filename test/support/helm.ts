import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';

/**
 * The folder with the programs `helm` and `check-manifests`, which `.ci/run` compiles from
 * `.ci/helm`.
 */
export const HELM_PROGRAMS = '/opt/svc-test/helm';

const CHART = resolve(import.meta.dirname, '../../helm');

/** The option by which helm renders for the oldest Kubernetes version that the chart supports. */
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

/** A Kubernetes object that the chart renders. */
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
 * Runs `helm lint` or `helm template` for the oldest Kubernetes version that the chart supports.
 * `input` is the standard input, which `--values -` reads.
 */
export function helm(args: readonly string[], input = ''): Promise<Output> {
  return run(join(HELM_PROGRAMS, 'helm'), [...args, KUBERNETES], input);
}

/**
 * Checks YAML documents against the schemas of Kubernetes, the Prometheus Operator and the Gateway
 * API. The output has a line of JSON for each valid document.
 */
export function checkManifests(documents: string): Promise<Output> {
  return run(join(HELM_PROGRAMS, 'check-manifests'), [], documents);
}

/**
 * Renders the chart as the release `svc`. The values are those of `helm/ci/minimal-values.yaml` and
 * the given ones, an object or YAML text. Returns the output of helm.
 */
export function template(values: object | string = {}, ...options: string[]): Promise<Output> {
  const minimal = join(CHART, 'ci/minimal-values.yaml');
  const args = ['template', 'svc', CHART, '--values', minimal, '--values', '-', ...options];
  return helm(args, typeof values === 'string' ? values : JSON.stringify(values));
}

/**
 * Renders the chart as {@link template} does, and returns its objects.
 *
 * @throws Error if helm refuses the values, or an object does not fit the schemas
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
 * Returns the objects in YAML documents.
 *
 * @throws Error if one of them does not fit the schemas
 */
export async function manifestsOf(documents: string): Promise<Manifest[]> {
  const checked = await checkManifests(documents);
  if (checked.status !== 0) throw new Error(checked.stderr);
  const lines = checked.stdout.trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Manifest);
}

/**
 * Returns the only object of a kind.
 *
 * @throws Error if there is none, or more than one
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
