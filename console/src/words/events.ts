// Texts of webhooks, which the API calls subscriptions, of their deliveries, and of live events.
import { counted, numbers } from './format.ts'

const webhooks = {
  noWebhooks: 'There are no webhooks here yet. Create one to send the events of this group to a URL.',
  newWebhook: 'New webhook',
  endpointUrl: 'Endpoint URL',
  endpointHint: 'The URL must start with https, and the server must be able to reach it.',
  paused: 'paused',
  failing: 'failing',
  delivering: 'delivering',
  nextAttempt: 'Next attempt:',
  behindSince: 'Deliveries have been delayed since',
  behindText: 'Later events are not in the list of deliveries yet. They will be sent in order, after the earlier ones.',
  catchUp: {
    paused: 'To send them, resume the webhook.',
    failing:
      'To send them, repair the endpoint. Events that are too old by then are skipped. To send skipped events, redeliver their time range.',
    delivering: 'No action is needed.',
  },
  deliveryCounts: (waiting: string, failed: string) => `${waiting} waiting, ${failed} failed.`,
  pause: 'Pause',
  resume: 'Resume',
  sendTest: 'Send test event',
  rotateSecret: 'Rotate secret',
  secretOnce: 'Copy this secret now. It is not shown again:',
  copySecret: 'Copy the secret',
  deleteWebhookOf: (url: string) => `Delete webhook ${url}`,
  deleteWebhookText: 'Events that are waiting for delivery will not be sent.',
}

const deliveries = {
  deliveryStatus: 'Delivery status',
  deliveriesTo: (url: string) => `Deliveries to ${url}`,
  deliveryStates: { '': 'all', WAITING: 'waiting', DELIVERED: 'delivered', GIVEN_UP: 'failed' },
  noDeliveries: 'There are no deliveries with this status.',
  attempts: 'Attempts',
  attemptsOf: (time: string) => `Attempts to deliver the event of ${time}`,
  noAttempts: 'There was no attempt yet.',
  duration: 'Duration',
  milliseconds: (count: number) => `${numbers(count)} ms`,
  attemptResults: {
    delivered: 'delivered',
    refused: 'refused by the endpoint',
    slowed: 'the endpoint asked to wait',
    gone: 'the endpoint does not exist any more',
    timeout: 'no response in time',
    unreachable: 'the endpoint cannot be reached',
    'private-address': 'the address is in a private network',
    insecure: 'the certificate is not valid',
    'bad-url': 'the URL is not valid',
  } as Record<string, string>,
  lastResponse: 'Last response',
  redeliver: 'Redeliver',
  redeliverOf: (time: string) => `Redeliver the event of ${time}`,
  redeliverRange: 'Redeliver a time range',
  redeliverRangeTo: (url: string) => `Redeliver a time range to ${url}`,
  untilNow: 'Leave empty for all events until now.',
  sentAgain: (events: number) => `${counted(events, 'event')} will be sent again.`,
  moreToSend: 'The queue is full. When these events have been delivered, send the rest.',
  sendRest: 'Send the rest',
}

const stream = {
  live: 'Live events',
  showLive: 'Show live events',
  stopLive: 'Stop live events',
  noLiveEvents: 'No events have happened since you opened this view.',
  subject: 'Resource',
}

export const eventWords = { ...webhooks, ...deliveries, ...stream }
