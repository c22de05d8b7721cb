// Webhooks (event subscriptions) with their deliveries, and requests that the registry refused.
import type {
  DeliveryJson,
  ReplayEventsResponseJson,
  SubscriptionSettingsJson,
} from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import type { RefusalJson } from '#gen/pinfold/control/events/v1/refusals_pb.ts'
import type { SubscriptionJson } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { codes } from '#lib/errors.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiCommand, inOption, parentOf } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type ArgumentSpec, type Commands, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { NameNotFound, namesOf } from '../framework/names.ts'
import { sessionOptions } from '../framework/session.ts'

const base = '/events/v2/subscriptions'
const whichArgument: ArgumentSpec = {
  name: '<webhook>',
  summary: 'Webhook: its uid, or its URL if no other webhook has the same URL',
}
/** Maximum number of deliveries or refusals without `--limit`. */
const usualLimit = 50

/** Path of the webhook that the argument names. */
async function pathOf(api: ApiReader, { webhook }: Options): Promise<string> {
  const given = String(webhook)
  if (isUid(given)) return `${base}/${given}`
  if (given === '') throw usageError('the uid of the webhook is empty; pinfold webhooks list lists webhooks')
  const { items } = await api.list<SubscriptionJson>(base, 'subscriptions', {})
  const [found, ...others] = items.filter(({ sink }) => sink === given).map(({ uid }) => uid)
  if (found === undefined) {
    const hint = 'pinfold webhooks list lists webhooks'
    const why = 'it does not exist, or you do not have access to it'
    throw new NameNotFound(`no webhook ${plain(given)} was found: ${why}\n${hint}`)
  }
  if (others.length === 0) return `${base}/${found}`
  const uids = [found, ...others].join('\n')
  throw failure(`several webhooks have this URL; give one of these uids instead:\n${uids}`)
}

const create = apiCommand(
  {
    details: `Prints the signing secret, which is not shown again. Deliveries are CloudEvents, sent as HTTP POST. They are signed with the keys of
the server, and with the secret according to Standard Webhooks.`,
    arguments: [{ name: '<url>', summary: 'Endpoint URL of the receiver: https://…' }],
    options: [
      inOption,
      {
        flags: '--type <pattern>',
        summary: "Only events of this type, such as '*.registry.push.*'; may be repeated",
        repeat: true,
      },
      outputOption,
    ],
    async run(api, options) {
      const parent = await parentOf(api, options.in)
      const made = (await api.call('POST', `${base}/${parent}`, { sink: options.url })) as SubscriptionJson
      const path = `${base}/${made.uid}`
      const types = (options.type ?? []) as string[]
      try {
        if (types.length > 0) await api.call('PATCH', `${path}/settings`, { types })
      } catch (error) {
        await api.call('DELETE', path)
        throw error
      }
      const { secret } = (await api.call('POST', `${path}:rotateSecret`, {})) as { secret: string }
      const rows = [
        ['uid', made.uid],
        ['sink', made.sink],
        ['types', types.join(', ') || 'all'],
      ]
      return { json: { ...made, types, secret }, rows, below: `secret  ${secret}` }
    },
  },
  sessionOptions,
)

const list = listCommand(
  {
    usual: Number.POSITIVE_INFINITY,
    options: [{ ...inOption, summary: 'Only webhooks of this organization or group' }, outputOption],
    async run(api, { in: parent }) {
      const scope = parent === undefined ? {} : { 'uidp.descendants_of': await parentOf(api, parent) }
      const { items, more } = await api.selected<SubscriptionJson>(base, 'subscriptions', scope)
      const found: (SubscriptionJson & SubscriptionSettingsJson)[] = []
      for (const one of items) {
        found.push({ ...((await api.call('GET', `${base}/${one.uid}/settings`)) as SubscriptionSettingsJson), ...one })
      }
      const rows = found.map((one) => [one.uid, one.sink, one.waiting ?? '0', one.givenUp ?? '0', stateOf(one)])
      return { json: { items: found }, head: ['UID', 'URL', 'WAITING', 'GIVEN UP', 'STATE'], rows, more }
    },
  },
  sessionOptions,
)

function stateOf({ paused, pauseReason, blockedUntil, behindTime }: SubscriptionSettingsJson): string {
  const behind = behindTime ? `; oldest waiting event: ${behindTime}` : ''
  if (paused) return `paused: ${pauseReason || 'no reason given'}${behind}`
  return (blockedUntil ? `deliveries fail; next attempt at ${blockedUntil}` : 'ok') + behind
}

const remove = apiCommand(
  {
    arguments: [whichArgument],
    options: [],
    async run(api, options) {
      await api.call('DELETE', await pathOf(api, options))
    },
  },
  sessionOptions,
)

const test = apiCommand(
  {
    details: 'The exit code is 1 if the receiver did not answer with a success status.',
    arguments: [whichArgument],
    options: [outputOption],
    async run(api, options) {
      const sent = (await api.call('POST', `${await pathOf(api, options)}:sendTest`, {})) as DeliveryJson
      const code = sent.state === 'DELIVERED' ? exitCodes.ok : exitCodes.failed
      return { json: sent, rows: [[resultOf(sent)]], code }
    },
  },
  sessionOptions,
)

const states = { waiting: 'WAITING', delivered: 'DELIVERED', 'given-up': 'GIVEN_UP' } as const

const deliveries = listCommand(
  {
    usual: usualLimit,
    arguments: [whichArgument],
    options: [
      { flags: '--state <state>', summary: 'Only deliveries in this state', choices: Object.keys(states) },
      outputOption,
    ],
    async run(api, options) {
      const path = await pathOf(api, options)
      const state = options.state === undefined ? undefined : states[options.state as keyof typeof states]
      const { items, more } = await api.selected<DeliveryJson>(`${path}/deliveries`, 'deliveries', { state })
      const rows = items.map((one) => [one.uid, one.createTime, one.type || '(not stored)', one.state, resultOf(one)])
      return { json: { items }, head: ['UID', 'TIME', 'TYPE', 'STATE', 'LAST ATTEMPT'], rows, more }
    },
  },
  sessionOptions,
)

function resultOf({ lastAttempt, attemptCount, nextAttemptTime }: DeliveryJson): string {
  if (!lastAttempt) return 'no attempt yet'
  const { result, status, durationMs } = lastAttempt
  const next = nextAttemptTime ? `, next attempt at ${nextAttemptTime}` : ''
  const count = (attemptCount ?? 1) > 1 ? `, attempt ${attemptCount}` : ''
  return `${result}${status ? ` (${status})` : ''} in ${durationMs} ms${count}${next}`
}

const replay = apiCommand(
  {
    details: `Times are RFC 3339, such as 2026-11-20T09:00:00Z. Each event keeps its id. If the queue of the webhook is full, prints a page token:
give it later with --page-token to continue.`,
    arguments: [whichArgument],
    options: [
      { flags: '--since <time>', summary: 'Only events at this time or later', required: true },
      { flags: '--until <time>', summary: 'Only events before this time; default: now' },
      { flags: '--page-token <token>', summary: 'Continue where an earlier run with the same times stopped' },
      outputOption,
    ],
    async run(api, options) {
      const path = await pathOf(api, options)
      const time = { startTime: options.since, ...(options.until === undefined ? {} : { endTime: options.until }) }
      let count = 0
      let pageToken = String(options.pageToken ?? '')
      let trouble = ''
      do {
        try {
          const made = (await api.call('POST', `${path}:replay`, { ...time, pageToken })) as ReplayEventsResponseJson
          count += Number(made.eventCount)
          pageToken = made.nextPageToken ?? ''
        } catch (error) {
          // Deliveries that were already queued are not undone, so the answer has the position to continue from.
          if (count === 0 || !(error instanceof CliError)) throw error
          const isFull = error instanceof ApiError && error.code === codes.FAILED_PRECONDITION.number
          if (!isFull) trouble = error.message
          break
        }
      } while (pageToken !== '')
      const rows = [[`${count} events will be sent again`]]
      const why = trouble === '' ? 'the queue of the webhook is full' : plain(trouble)
      if (pageToken !== '') rows.push([`${why}; to continue later: --page-token ${pageToken}`])
      const code = trouble === '' ? exitCodes.ok : exitCodes.failed
      return { json: { eventCount: String(count), nextPageToken: pageToken }, rows, code }
    },
  },
  sessionOptions,
)

export const subscriptions: Commands = { create, list, delete: remove, test, deliveries, replay }

export const refusals = listCommand(
  {
    usual: usualLimit,
    details: `Shows a sample: only the latest refusals of an organization are stored, and equal ones within an hour are one line. You need access
to the audit log.`,
    options: [
      {
        flags: '--in <group>',
        summary: 'Organization or folder: ORG, ORG/FOLDER or a uid; default: your own organization',
        former: ['--group <group>'],
      },
      outputOption,
    ],
    async run(api, options) {
      const path = `/events/v2/refusals/${await parentOf(api, options.in)}`
      const { items, more } = await api.selected<RefusalJson>(path, 'refusals', {})
      if (options.output === 'json') return { json: { items }, more }
      const names = await namesOf(api, { identities: items.map(({ caller = '' }) => caller) })
      const rows = items.map((one) => {
        const { repository = '', reference, caller = '', remoteAddress = '' } = one
        const what = reference ? `${repository}  ${reference}` : repository
        const who = `${names.of(caller)} (${remoteAddress})`
        return [one.lastTime, one.count, one.action, what || '(unknown repository)', who, `${one.code}: ${one.reason}`]
      })
      return { head: ['LAST', 'COUNT', 'ACTION', 'IMAGE', 'BY', 'REASON'], rows, more }
    },
  },
  sessionOptions,
)
