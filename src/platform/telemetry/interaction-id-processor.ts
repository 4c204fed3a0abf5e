import { trace, type Context } from '@opentelemetry/api';
import { NoopSpanProcessor, type Span } from '@opentelemetry/sdk-trace';
import { INTERACTION_ATTRIBUTE } from './clean-span.js';

/** Gives every span the interaction id of the one around it. */
export class InteractionIdProcessor extends NoopSpanProcessor {
  override onStart(span: Span, around: Context): void {
    const parent = trace.getSpan(around) as Partial<Span> | undefined;
    const id = parent?.attributes?.[INTERACTION_ATTRIBUTE];
    if (id !== undefined) span.setAttribute(INTERACTION_ATTRIBUTE, id);
  }
}
