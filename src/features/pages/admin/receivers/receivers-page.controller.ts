import { Controller, Get, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { AUDIT_KINDS } from '#domain/audit/audit-kinds.js';
import { EventReceivers, seenSettings } from '#domain/oauth/event-receivers/event-receivers.js';
import type { EventReceiver } from '#domain/oauth/event-receivers/receivers.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { jsonTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';
import { labelOf } from '../event-words.js';

/** The name of the protocol by which each kind of receiver gets the events. */
const KIND_WORDS: Readonly<Record<EventReceiver['kind'], string>> = {
  webhook: 'Standard Webhooks',
  otlp: 'OTLP logs over HTTP',
};

/** The groups of events that a receiver can get. The page also offers the choice of all events. */
const TYPE_CHOICES = [
  ...Object.entries(AUDIT_KINDS).map(([value, text]) => ({ value, text })),
  { value: 'notices', text: 'What people are told of: new keys, passes, admins and tokens' },
];

/**
 * Serves `/admin/event-receivers`, where admins choose who gets the audit log of the organization.
 */
@Controller('admin/event-receivers')
@Route(PAGE_ROUTE)
export class ReceiversPageController {
  constructor(
    private readonly eventReceivers: EventReceivers,
    private readonly views: Views,
  ) {}

  /**
   * Lists the receivers for an admin.
   *
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the event receivers of the organization' })
  async list(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'event-receivers', async (admin) => ({
      receivers: (await this.eventReceivers.list(admin)).map(shownReceiver),
      types: TYPE_CHOICES,
    }));
  }

  /**
   * Shows a receiver to an admin.
   *
   * @throws DomainError admin_required, not_found
   */
  @Get(':id')
  @Route({ summary: 'Shows an event receiver' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'event-receiver', async (admin) => {
      const { receiver, waiting, oldest, sent, failed, letters } = await this.eventReceivers.show(
        admin,
        id,
      );
      return {
        receiver: shownReceiver(receiver),
        tag: jsonTag(seenSettings(receiver)),
        figures: { waiting, oldest: oldest && moment(oldest), sent, failed },
        letters: letters.map((letter) => ({
          ...letter,
          words: labelOf(letter.type),
          at: moment(letter.eventAt),
        })),
      };
    });
  }
}

/** Returns a receiver with its kind in words, and with its times as a template shows them. */
function shownReceiver(receiver: EventReceiver) {
  return {
    ...receiver,
    kindWords: KIND_WORDS[receiver.kind],
    createdAt: moment(receiver.createdAt),
    lastTriedAt: receiver.lastTriedAt && moment(receiver.lastTriedAt),
    lastTakenAt: receiver.lastTakenAt && moment(receiver.lastTakenAt),
    nextAttemptAt: receiver.nextAttemptAt && moment(receiver.nextAttemptAt),
    oldSecretUntil: receiver.oldSecretUntil && moment(receiver.oldSecretUntil),
  };
}
