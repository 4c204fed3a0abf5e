import { nearestOf } from '#platform/text/edit-distance.js';
import type { Environment } from './environment.js';
import { providerVariable, slugsOf } from './provider-settings.js';
import { PROVIDER_VARIABLES } from './table/providers.js';
import { VARIABLES } from './table/settings.js';

/** All variables except those of providers. `SVC_HOME` is the folder of the `svc` command. */
const KNOWN = [...VARIABLES.keys(), 'SVC_HOME'];
const OF_PROVIDERS = [...PROVIDER_VARIABLES.keys()];

/** The largest edit distance from a known name at which a name counts as mistyped. */
const MISTYPED = 2;

/**
 * The variables, as `NAME=value`, that Kubernetes injects for a Service whose name begins with
 * `svc`: SVC_SERVICE_HOST, SVC_PORT_443_TCP_ADDR and the like.
 */
const OF_KUBERNETES = [
  /^\w+_PORT_\d+_(?:TCP|UDP|SCTP)_(?:PROTO|PORT|ADDR)=/,
  /^\w+_SERVICE_HOST=[\da-f.:]+$/i,
  /^\w+_SERVICE_PORT(?:_[A-Z0-9_]+)?=\d+$/,
  /^\w+_PORT(?:_\d+_(?:TCP|UDP|SCTP))?=(?:tcp|udp|sctp):\/\//,
];

/** A name that is no setting: fatal if it is probably mistyped, otherwise a warning. */
interface Finding {
  readonly isFatal: boolean;
  readonly text: string;
}

/**
 * Finds the `SVC_` variables that are no setting. A name at most two letters away from a known name
 * is fatal, because a mistyped `SVC_ALLOWED_DOMAIN` would open enrollment to every domain.
 */
export function unknownNames(environment: Environment) {
  const prefixes = slugsOf(environment).map((slug) => providerVariable(slug, ''));
  const found = Object.entries(environment).flatMap(([name, value = '']) => {
    if (!name.startsWith('SVC_') || KNOWN.includes(name)) return [];
    if (OF_KUBERNETES.some((pattern) => pattern.test(`${name}=${value}`))) return [];
    const isOfProvider = name.startsWith('SVC_IDP_');
    const finding = isOfProvider ? unknownOfProvider(name, prefixes) : unknown(name);
    return finding ? { isFatal: finding.isFatal, line: `${name}: ${finding.text}` } : [];
  });
  return {
    problems: found.flatMap(({ isFatal, line }) => (isFatal ? line : [])),
    warnings: found.flatMap(({ isFatal, line }) => (isFatal ? [] : line)),
  };
}

function unknown(name: string): Finding {
  const { nearest, distance } = nearestOf(name, KNOWN);
  const suggestion = distance <= name.length / 2 ? `; did you mean ${nearest}?` : '';
  const text = `is not a variable of this service${suggestion}`;
  return { isFatal: distance <= MISTYPED, text };
}

/** Compares a provider's variable without `SVC_IDP_<SLUG>_`, because operators choose the slug. */
function unknownOfProvider(name: string, prefixes: readonly string[]): Finding | undefined {
  const prefix = prefixes
    .filter((candidate) => name.startsWith(candidate))
    .toSorted((a, b) => b.length - a.length)[0];
  const suffix = name.slice(prefix?.length);
  if (prefix !== undefined && OF_PROVIDERS.includes(suffix)) return undefined;
  if (OF_PROVIDERS.some((candidate) => name.endsWith(`_${candidate}`))) {
    return { isFatal: false, text: 'belongs to no provider that SVC_IDPS lists' };
  }
  const text = 'is not a variable of an identity provider';
  if (prefix === undefined) return { isFatal: false, text };
  const { nearest, distance } = nearestOf(suffix, OF_PROVIDERS);
  return { isFatal: distance <= MISTYPED, text: `${text}; did you mean ${prefix}${nearest}?` };
}
