/** A certificate that the service has issued and returned. */
export interface AnsweredCertificate {
  readonly serial: string;
  readonly certificate: string;
  readonly email: string;
  /** The time at which the answer arrived, by `performance.now()`. */
  readonly at: number;
}

/** Every certificate that the service has returned, even if its database has lost it since. */
export class Ledger {
  readonly answered: AnsweredCertificate[] = [];
  readonly #bySerial = new Map<string, AnsweredCertificate>();
  /**
   * The serials that two different certificates have. It must stay empty after a correct failover.
   */
  readonly equalSerials: string[] = [];

  add(answered: AnsweredCertificate): void {
    this.answered.push(answered);
    const earlier = this.#bySerial.get(answered.serial);
    if (earlier && earlier.certificate !== answered.certificate)
      this.equalSerials.push(answered.serial);
    this.#bySerial.set(answered.serial, answered);
  }

  /** Returns the certificates that were returned since a time of `performance.now()`. */
  since(time: number): AnsweredCertificate[] {
    return this.answered.filter(({ at }) => at >= time);
  }
}
