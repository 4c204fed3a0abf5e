/** A certificate that was answered. */
export interface AnsweredCertificate {
  readonly serial: string;
  readonly certificate: string;
  readonly email: string;
  /** The time of the answer, of `performance.now()`. */
  readonly at: number;
}

/** Every certificate that the service has answered, lost ones as well. */
export class Ledger {
  readonly answered: AnsweredCertificate[] = [];
  readonly #bySerial = new Map<string, AnsweredCertificate>();
  /** The serials that two different certificates have. */
  readonly equalSerials: string[] = [];

  add(answered: AnsweredCertificate): void {
    this.answered.push(answered);
    const earlier = this.#bySerial.get(answered.serial);
    if (earlier && earlier.certificate !== answered.certificate)
      this.equalSerials.push(answered.serial);
    this.#bySerial.set(answered.serial, answered);
  }

  /** Returns what was answered since a time of `performance.now()`. */
  since(time: number): AnsweredCertificate[] {
    return this.answered.filter(({ at }) => at >= time);
  }
}
