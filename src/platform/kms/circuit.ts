/** The limits of a circuit. Times are in milliseconds. */
export interface CircuitLimits {
  /** The number of calls that fail in a row before the circuit opens. */
  readonly failuresToOpen: number;
  /**
   * The milliseconds for which the circuit stays open the first time. They double with each failed
   * probe.
   */
  readonly firstOpening: number;
  readonly longestOpening: number;
}

/**
 * The circuit of one key: closed lets calls through, open refuses them, and probing lets one call
 * through.
 */
export type Circuit =
  | { readonly state: 'closed'; readonly failures: number }
  | { readonly state: 'open'; readonly until: number; readonly opening: number }
  | { readonly state: 'probing'; readonly opening: number };

/** A circuit that lets calls through. */
export const CLOSED: Circuit = { state: 'closed', failures: 0 };

/** The decision about a call, with the circuit after it. */
export interface Admission {
  readonly circuit: Circuit;
  /**
   * The milliseconds after which a refused call may be repeated; undefined if the call is admitted.
   */
  readonly wait: number | undefined;
  /** True if the call is the probe: its outcome decides if the circuit closes. */
  readonly isProbe: boolean;
}

/**
 * Decides whether a call is sent. The first call after an opening is the probe. Calls at the same
 * time as the probe are refused.
 */
export function admit(circuit: Circuit, now: number, { firstOpening }: CircuitLimits): Admission {
  if (circuit.state === 'closed') return { circuit, wait: undefined, isProbe: false };
  if (circuit.state === 'probing') return { circuit, wait: firstOpening, isProbe: false };
  const wait = circuit.until - now;
  if (wait > 0) return { circuit, wait, isProbe: false };
  const probing = { state: 'probing', opening: circuit.opening } as const;
  return { circuit: probing, wait: undefined, isProbe: true };
}

/**
 * Returns the circuit after a call failed. The failure of a call that was sent before the circuit
 * opened does not count. Only a failed probe opens the circuit again, for twice the time.
 */
export function afterFailure(
  circuit: Circuit,
  isProbe: boolean,
  now: number,
  { failuresToOpen, firstOpening, longestOpening }: CircuitLimits,
): Circuit {
  if (circuit.state === 'closed') {
    const failures = circuit.failures + 1;
    if (failures < failuresToOpen) return { state: 'closed', failures };
    return { state: 'open', until: now + firstOpening, opening: firstOpening };
  }
  if (circuit.state === 'open' || !isProbe) return circuit;
  const opening = Math.min(longestOpening, circuit.opening * 2);
  return { state: 'open', until: now + opening, opening };
}
