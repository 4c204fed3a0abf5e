/**
 * The ARN of an IAM role: a partition, an account, an optional path, and a name of 64 characters at
 * most.
 */
export const ROLE_ARN =
  /^arn:aws[a-z-]*:iam::\d{12}:role\/(?:[\x21-\x7e]{1,1920}\/)?[\w+=,.@-]{1,64}$/;

/** The most characters of an ARN that the service accepts. */
export const LONGEST_ARN = 2048;

/** The name of a region of AWS, such as `eu-central-1`. */
export const REGION = /^[a-z]{2,8}(?:-[a-z0-9]+){1,4}$/;
