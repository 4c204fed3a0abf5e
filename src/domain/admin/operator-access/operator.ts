/** The person at the machine, as far as the operating system knows the person. */
export interface MachineOperator {
  readonly name: string;
  /** The real user id of the process. The kernel states it, so no variable can change it. */
  readonly uid: number;
  /**
   * The user id of the login, which `sudo` and `su` leave as it is; undefined if the kernel does
   * not say it.
   */
  readonly loginUid: number | undefined;
  /**
   * The name in `SUDO_USER`: a claim, since every user can set the variable; undefined without it.
   */
  readonly claimedUser: string | undefined;
  readonly host: string;
}

/** The facts about an operator in the details of an audit row, and in the line of the log. */
export interface OperatorDetails {
  readonly by: 'operator';
  readonly os_user: string;
  readonly os_uid: number;
  readonly os_login_uid?: number;
  readonly claimed_user?: string;
  readonly host: string;
}

/** Returns the facts about an operator as audit rows and log lines have them. */
export function operatorDetails(operator: MachineOperator): OperatorDetails {
  const { name, uid, loginUid, claimedUser, host } = operator;
  return {
    by: 'operator',
    os_user: name,
    os_uid: uid,
    ...(loginUid !== undefined && { os_login_uid: loginUid }),
    ...(claimedUser !== undefined && { claimed_user: claimedUser }),
    host,
  };
}
