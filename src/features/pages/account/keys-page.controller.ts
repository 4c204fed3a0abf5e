import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { endedWords } from '#domain/access-revocation/ended-words.js';
import { listKeyEvents, type KeyEvent } from '#domain/audit/audit-events.repository.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { MOST_KEYS } from '#domain/keys/enrollment/enrollment-policy.js';
import { SecurityKeys } from '#domain/sign-in/key-authentication/security-keys.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { eventDays, type EventLine, type TextPart } from '../shell/event-days.js';
import { moment } from '../shell/moment.js';
import { showToUser } from '../shell/show-page.js';
import { keyDrawing } from './key-drawing.js';

/** The largest number of events about keys that the page shows. */
const EVENTS_SHOWN = 20;

/**
 * Serves `/account/keys`, where users add, rename and remove their security keys and see the events
 * about them.
 */
@Controller('account/keys')
@Route(PAGE_ROUTE)
export class KeysPageController {
  constructor(
    private readonly keys: SecurityKeys,
    private readonly manager: EntityManager,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the security keys of the user' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToUser(this.views, { caller, response }, 'keys', async (session) => {
      const { user } = session;
      const [keys, access, events] = await Promise.all([
        this.keys.list(user.id),
        this.keys.countAccess(user.id),
        listKeyEvents(this.manager, user, EVENTS_SHOWN),
      ]);
      return {
        mayRemove: keys.length > 1,
        mayAdd: keys.length < MOST_KEYS,
        keys: keys.map((key) => ({
          ...key,
          model: modelOf(key.aaguid),
          drawing: { ...keyDrawing(modelName(key.aaguid)), id: key.id },
          created: moment(key.createdAt),
          lastUsed: key.lastUsedAt && moment(key.lastUsedAt),
          current: key.id === session.authenticatorId,
          ends: endedWords(access.get(key.id) ?? {}),
        })),
        days: eventDays(events.map(eventOf)),
      };
    });
  }
}

function modelOf(aaguid: string | null): string {
  return modelName(aaguid) ?? 'Security key';
}

/**
 * Returns an event about a key as a line of a list: its sentence, and facts such as the IP address.
 */
function eventOf(event: KeyEvent): EventLine {
  return {
    type: event.type,
    at: moment(event.at),
    sentence: sentenceOf(event),
    facts: [
      ['From', event.ip ?? 'an unknown address'],
      ['Reference', event.requestId],
    ],
  };
}

function sentenceOf({ type, name, earlierName, reason, aaguid }: KeyEvent): TextPart[] {
  const model = words(` (${modelOf(aaguid)})`);
  if (type === 'enrollment') return [words(`Enrolled: ${modelOf(aaguid)}`)];
  if (type === 'key_registered') return [words('Added: '), called(name), model];
  if (type === 'key_removed') return [words('Removed: '), called(name), model];
  if (type !== 'key_renamed') return [words('Refused: '), called(reason)];
  const earlier = earlierName === null ? [] : [called(earlierName), words(' is now ')];
  return [words('Renamed: '), ...earlier, called(name)];
}

function words(text: string): TextPart {
  return { text, isName: false };
}

function called(name: string | null): TextPart {
  return { text: name ?? '', isName: true };
}
