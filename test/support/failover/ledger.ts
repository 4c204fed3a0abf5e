/** A certificate that the service returned to a person. */
export interface AnsweredCertificate {
  readonly serial: string;
  readonly certificate: string;
  readonly email: string;
  /** The time at which the answer arrived, by `performance.now()`. */
  readonly at: number;
}

/** Every certificate that the service returned, even if a failover has lost its row since. */
export class Ledger {
  readonly answered: AnsweredCertificate[] = [];
  readonly #bySerial = new Map<string, AnsweredCertificate>();
  /**
   * The serials that two different certificates have. If the failover is correct, there is none.
   */
  readonly equalSerials: string[] = [];

  add(answered: AnsweredCertificate): void {
    this.answered.push(answered);
    const earlier = this.#bySerial.get(answered.serial);
    if (earlier && earlier.certificate !== answered.certificate)
      this.equalSerials.push(answered.serial);
    this.#bySerial.set(answered.serial, answered);
  }

  /** Returns the certificates that arrived since a time of `performance.now()`. */
  since(time: number): AnsweredCertificate[] {
    return this.answered.filter(({ at }) => at >= time);
  }
}
