import { Reflector } from '@nestjs/core';

const KIB = 1024;

/** The largest body of each kind of route, in bytes. */
export const BODY_LIMITS = {
  default: 256 * KIB,
  credentials: 8 * KIB,
  webauthn: 32 * KIB,
} as const;

/** The kinds of route that differ in the size of their bodies. */
export type BodyKind = keyof typeof BODY_LIMITS;

/** States which of {@link BODY_LIMITS} holds for a route or a controller. */
export const BodyLimit = Reflector.createDecorator<BodyKind>();
