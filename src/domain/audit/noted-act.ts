/**
 * An act on access or on a secret that a process remembers after the commit. If a failover of the
 * database loses the commit, the service ends the access again, or lists the secret for the admins
 * to check. `user_activated` only makes the process forget an earlier deactivation of the user.
 */
export type NotedAct =
  | {
      readonly kind: 'user_removed' | 'user_deactivated';
      readonly userId: string;
      readonly orgId: string | null;
      /** The value of `revokedBy` in the revoked rows: `scim`, or the id of an admin. */
      readonly revokedBy: string;
      readonly reason: string;
    }
  | {
      /**
       * The user may sign in again, so an earlier deactivation that was lost must not be repeated.
       */
      readonly kind: 'user_activated';
      readonly userId: string;
    }
  | {
      readonly kind: 'credentials_revoked';
      readonly userId: string;
      readonly revokedBy: string;
      readonly reason: string;
      /** True if the next enrollment of the user needs a re-enrollment pass. */
      readonly demandsPass: boolean;
    }
  | {
      readonly kind: 'key_removed';
      readonly userId: string;
      readonly keyId: string;
      readonly revokedBy: string;
      readonly reason: string;
    }
  | { readonly kind: 'admin_demoted'; readonly userId: string; readonly orgId: string }
  | {
      /** The application was deleted with its secrets, grants and tokens. */
      readonly kind: 'application_removed';
      readonly clientId: string;
      readonly orgId: string | null;
      readonly name: string;
    }
  | {
      /**
       * The application may not receive signals (security events) any more. Its stream and its
       * tokens ended.
       */
      readonly kind: 'signals_withdrawn';
      readonly clientId: string;
      readonly orgId: string | null;
      /** The resource (RFC 8707) for which the ended tokens were issued. */
      readonly resource: string;
    }
  | {
      /** The event receiver was removed, so that the audit log does not go to it any more. */
      readonly kind: 'receiver_removed';
      readonly receiverId: string;
      readonly orgId: string;
      readonly name: string;
    }
  | NotedSecret;

/** A SCIM token, an API token or a secret of an application that was made, or that ended. */
export interface NotedSecret {
  readonly kind: 'secret_made' | 'secret_ended';
  readonly secret: 'scim_token' | 'api_token' | 'client_secret';
  readonly secretId: string;
  /**
   * The organization of the token or application; null for an application of a user without an
   * organization.
   */
  readonly orgId: string | null;
  /** The description of the token, or the name of the application. */
  readonly name: string;
  /** The id of the application, if the secret is a client secret. */
  readonly clientId?: string;
  /**
   * The time at which the secret ends, if it stays valid for a while beside the secret that
   * replaces it. Without it, the secret ends at once.
   */
  readonly endsAt?: Date;
}

/** A token of an organization, with the name by which an admin recognizes it. */
interface NamedToken {
  readonly id: string;
  /** The description of a SCIM token, or the name of an API token. */
  readonly name: string;
}

/**
 * Returns the note that a token of an organization was made or ended. A process keeps such notes
 * for an hour, and repeats the end of a token if a failover of the database loses it.
 *
 * @param endsAt the end of a token that stays valid for a while beside the token that replaces it
 */
export function notedToken(
  kind: NotedSecret['kind'],
  secret: 'scim_token' | 'api_token',
  orgId: string,
  { id: secretId, name }: NamedToken,
  endsAt?: Date,
): NotedSecret {
  return { kind, secret, secretId, orgId, name, ...(endsAt && { endsAt }) };
}

/** The acts of one audit event, after the commit of its transaction. */
export interface CommittedActs {
  /**
   * The id of the audit event. If a database server lacks it after a failover, the acts are lost.
   */
  readonly auditId: string;
  readonly acts: readonly NotedAct[];
}
