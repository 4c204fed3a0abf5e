/** The operator of the service, as the operating system of the machine identifies the person. */
export interface MachineOperator {
  readonly name: string;
  /**
   * The real user id of the process. It is reliable, because the kernel states it and no
   * environment variable can change it.
   */
  readonly uid: number;
  /**
   * The user id with which the person logged in to the machine (`loginuid` of Linux). The commands
   * `sudo` and `su` do not change it. Undefined if the kernel does not state it.
   */
  readonly loginUid: number | undefined;
  /**
   * The name in the environment variable `SUDO_USER`; undefined if the variable is not set. It
   * proves nothing, because every user can set the variable.
   */
  readonly claimedUser: string | undefined;
  readonly host: string;
}

/** The facts about an operator, as audit events and log lines contain them. */
export interface OperatorDetails {
  readonly by: 'operator';
  readonly os_user: string;
  readonly os_uid: number;
  readonly os_login_uid?: number;
  readonly claimed_user?: string;
  readonly host: string;
}

/** Returns the facts about an operator for audit events and log lines. */
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
