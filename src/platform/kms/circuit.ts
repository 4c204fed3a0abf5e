/** The limits of a circuit breaker. Times are in milliseconds. */
export interface CircuitLimits {
  /** The number of calls that must fail in a row to open the circuit, so that calls are refused. */
  readonly failuresToOpen: number;
  /**
   * The milliseconds for which the circuit is open, and refuses calls, the first time. After that
   * time a single call, the probe, is sent. Each time the probe fails, the time doubles.
   */
  readonly firstOpening: number;
  readonly longestOpening: number;
}

/**
 * The state of the circuit breaker of one key. A closed circuit sends calls, an open circuit
 * refuses them, and a probing circuit sends one call to find out if KMS works again. `opening` is
 * the time in milliseconds for which the circuit is open.
 */
export type Circuit =
  | { readonly state: 'closed'; readonly failures: number }
  | { readonly state: 'open'; readonly until: number; readonly opening: number }
  | { readonly state: 'probing'; readonly opening: number };

/** The state of a circuit breaker that sends calls, before any failure. */
export const CLOSED: Circuit = { state: 'closed', failures: 0 };

/** The decision about a call, and the state of the circuit after it. */
export interface Admission {
  readonly circuit: Circuit;
  /** The milliseconds after which a refused call may be repeated; undefined if the call is sent. */
  readonly wait: number | undefined;
  /** True if the call is the probe: its outcome decides if the circuit closes. */
  readonly isProbe: boolean;
}

/**
 * Decides whether a call is sent. After the circuit was open for its time, the first call is sent
 * as the probe. Other calls are refused until the probe has ended.
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
 * Returns the state of the circuit after KMS answered a call. If the circuit has opened since the
 * call was sent, it stays open, because only the probe closes it.
 */
export function afterAnswer(circuit: Circuit, isProbe: boolean): Circuit {
  return isProbe || circuit.state === 'closed' ? CLOSED : circuit;
}

/**
 * Returns the state of the circuit after a call failed. The failure of a call that was sent before
 * the circuit opened does not count. If the probe failed, the circuit opens again, for twice the
 * time.
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
