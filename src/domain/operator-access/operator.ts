/** The person at the machine, as the operating system knows the person. */
export interface MachineOperator {
  readonly name: string;
  readonly uid: number;
  /** The user who ran `sudo`; undefined without it. */
  readonly sudoUser: string | undefined;
  readonly host: string;
}

/** The facts about an operator in the details of an audit row, and in the line of the log. */
export interface OperatorDetails {
  readonly by: 'operator';
  readonly os_user: string;
  readonly os_uid: number;
  readonly sudo_user?: string;
  readonly host: string;
}

/** Returns the facts about an operator as audit rows and log lines have them. */
export function operatorDetails({ name, uid, sudoUser, host }: MachineOperator): OperatorDetails {
  return {
    by: 'operator',
    os_user: name,
    os_uid: uid,
    ...(sudoUser !== undefined && { sudo_user: sudoUser }),
    host,
  };
}
