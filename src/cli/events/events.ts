// Subscriptions of events with their deliveries, and requests that the registry refused.
import { codes } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiCommand, parentOf } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type ArgumentSpec, type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { actorsOf, NothingNamed } from '../framework/names.ts'
import { plain } from '../framework/plain-text.ts'
import { sessionOptions } from '../framework/session.ts'

type Subscription = { uid: string; sink: string; createTime: string }
type Settings = {
  types?: string[]
  paused?: boolean
  pauseReason?: string
  waiting?: string
  behindTime?: string
  givenUp?: string
  blockedUntil?: string
}
type Attempt = { result: string; status: number; durationMs: number; createTime: string }
type Delivery = {
  uid: string
  state: string
  type?: string
  subject: string
  attemptCount?: number
  nextAttemptTime?: string
  lastAttempt?: Attempt
  createTime: string
}

type Replayed = { eventCount: string; nextPageToken: string }
type Refusal = {
  repository?: string
  reference?: string
  action: string
  caller: string
  remoteAddress?: string
  code: string
  reason: string
  count: string
  lastTime: string
}

const base = '/events/v2/subscriptions'
const whichArgument: ArgumentSpec = {
  name: '<subscription>',
  summary: 'Its uid, or where it sends to if only one sends there',
}
const parentOption: OptionSpec = {
  flags: '--parent <group>',
  summary: 'A group by uid or an organisation by name; your own unless given',
}
const limitOption: OptionSpec = { flags: '--limit <count>', summary: 'How many: 50 unless given, 200 at most' }

/** The size of the one page that is shown, as the API takes it. */
function limitOf({ limit = '50' }: Options): string {
  if (/^\d{1,3}$/.test(String(limit)) && Number(limit) >= 1 && Number(limit) <= 200) return String(limit)
  throw usageError('--limit must be a number from 1 to 200')
}

/** The path of the subscription that the argument names. */
async function pathOf(api: ApiReader, { subscription }: Options): Promise<string> {
  const given = String(subscription)
  if (isUid(given)) return `${base}/${given}`
  if (given === '') throw usageError('say which subscription: its uid is empty')
  const { items } = await api.list<Subscription>(base, 'subscriptions', {})
  const [found, ...others] = items.filter(({ sink }) => sink === given).map(({ uid }) => uid)
  if (found === undefined) {
    const hint = 'pinfold events subscriptions list shows those that there are'
    throw new NothingNamed(`there is no subscription ${plain(given)} that you can see\n${hint}`)
  }
  if (others.length === 0) return `${base}/${found}`
  const uids = [found, ...others].join('\n')
  throw failure(`several subscriptions send there; name one by its uid:\n${uids}`)
}

const create = apiCommand(
  {
    details: `Prints the secret of the signatures, which cannot be read again. Deliveries are CloudEvents as HTTP POST, signed by the
server's keys and, with the secret, as Standard Webhooks has it.`,
    arguments: [{ name: '<sink>', summary: 'An https URL' }],
    options: [
      parentOption,
      {
        flags: '--type <pattern>',
        summary: "Only events of this type, such as '*.registry.push.*'; may be repeated",
        repeat: true,
      },
      outputOption,
    ],
    async run(api, options) {
      const parent = await parentOf(api, options.parent)
      const made = (await api.call('POST', `${base}/${parent}`, { sink: options.sink })) as Subscription
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

const list = apiCommand(
  {
    options: [{ ...parentOption, summary: 'Only those of this group and below' }, outputOption],
    async run(api, { parent }) {
      const scope = parent === undefined ? {} : { 'uidp.descendants_of': await parentOf(api, parent) }
      const { items } = await api.list<Subscription>(base, 'subscriptions', scope)
      const found: (Subscription & Settings)[] = []
      for (const one of items) {
        found.push({ ...((await api.call('GET', `${base}/${one.uid}/settings`)) as Settings), ...one })
      }
      const rows = found.map((one) => [one.uid, one.sink, one.waiting ?? '0', one.givenUp ?? '0', stateOf(one)])
      return { json: { items: found }, head: ['UID', 'SINK', 'WAITING', 'GIVEN UP', 'STATE'], rows }
    },
  },
  sessionOptions,
)

function stateOf({ paused, pauseReason, blockedUntil, behindTime }: Settings): string {
  const behind = behindTime ? `; behind since ${behindTime}` : ''
  if (paused) return `paused: ${pauseReason || 'no reason given'}${behind}`
  return (blockedUntil ? `the sink fails; tried again at ${blockedUntil}` : 'ok') + behind
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
    details: 'Ends with 1 when the receiver has not answered with success.',
    arguments: [whichArgument],
    options: [outputOption],
    async run(api, options) {
      const sent = (await api.call('POST', `${await pathOf(api, options)}:sendTest`, {})) as Delivery
      const code = sent.state === 'DELIVERED' ? exitCodes.ok : exitCodes.failed
      return { json: sent, rows: [[resultOf(sent)]], code }
    },
  },
  sessionOptions,
)

const states = { waiting: 'WAITING', delivered: 'DELIVERED', 'given-up': 'GIVEN_UP' } as const

const deliveries = apiCommand(
  {
    arguments: [whichArgument],
    options: [
      { flags: '--state <state>', summary: 'Only these', choices: Object.keys(states) },
      limitOption,
      outputOption,
    ],
    async run(api, options) {
      const path = await pathOf(api, options)
      const state = options.state === undefined ? '' : `&state=${states[options.state as keyof typeof states]}`
      const page = await api.call('GET', `${path}/deliveries?page_size=${limitOf(options)}${state}`)
      const items = (page.deliveries ?? []) as Delivery[]
      const rows = items.map((one) => [one.uid, one.createTime, one.type || '(not kept)', one.state, resultOf(one)])
      return { json: { items }, head: ['UID', 'TIME', 'TYPE', 'STATE', 'LAST ATTEMPT'], rows }
    },
  },
  sessionOptions,
)

function resultOf({ lastAttempt, attemptCount, nextAttemptTime }: Delivery): string {
  if (!lastAttempt) return 'not tried yet'
  const { result, status, durationMs } = lastAttempt
  const next = nextAttemptTime ? `, again at ${nextAttemptTime}` : ''
  const count = (attemptCount ?? 1) > 1 ? `, attempt ${attemptCount}` : ''
  return `${result}${status ? ` (${status})` : ''} in ${durationMs} ms${count}${next}`
}

const replay = apiCommand(
  {
    details: `Times are RFC 3339, such as 2026-11-20T09:00:00Z. Each event has the id that it had before. Where as many wait as may, it says
how to go on later.`,
    arguments: [whichArgument],
    options: [
      { flags: '--since <time>', summary: 'From this time on', required: true },
      { flags: '--until <time>', summary: 'Before this time; now unless given' },
      { flags: '--page-token <token>', summary: 'Go on where a run with the same times has ended' },
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
          const made = (await api.call('POST', `${path}:replay`, { ...time, pageToken })) as Replayed
          count += Number(made.eventCount)
          pageToken = made.nextPageToken
        } catch (error) {
          // Deliveries that are already made stay, so the answer names the position to continue from.
          if (count === 0 || !(error instanceof CliError)) throw error
          const isFull = error instanceof ApiError && error.code === codes.FAILED_PRECONDITION.number
          if (!isFull) trouble = error.message
          break
        }
      } while (pageToken !== '')
      const rows = [[`${count} events will be sent once more`]]
      const why = trouble === '' ? 'as many wait as may' : plain(trouble)
      if (pageToken !== '') rows.push([`${why}; go on later with --page-token ${pageToken}`])
      const code = trouble === '' ? exitCodes.ok : exitCodes.failed
      return { json: { eventCount: String(count), nextPageToken: pageToken }, rows, code }
    },
  },
  sessionOptions,
)

export const subscriptions: Commands = { create, list, delete: remove, test, deliveries, replay }

export const refusals = apiCommand(
  {
    details: `A sample: the latest of an organisation are kept, and those of one hour that are alike are one line. Whoever may read
the audit log sees it.`,
    options: [
      {
        flags: '--group <group>',
        summary: 'A group by uid or by name, ORG or ORG/FOLDER; your own organisation unless given',
      },
      limitOption,
      outputOption,
    ],
    check: limitOf,
    async run(api, options) {
      const path = `/events/v2/refusals/${await parentOf(api, options.group)}?page_size=${limitOf(options)}`
      const items = ((await api.call('GET', path)).refusals ?? []) as Refusal[]
      if (options.output === 'json') return { json: { items } }
      const names = await actorsOf(
        api,
        items.map(({ caller }) => caller),
      )
      const rows = items.map((one) => {
        const what = one.reference ? `${one.repository ?? ''}  ${one.reference}` : (one.repository ?? '')
        const who = `${names.get(one.caller) ?? one.caller} (${one.remoteAddress ?? ''})`
        return [one.lastTime, one.count, one.action, what || '(none of that name)', who, `${one.code}: ${one.reason}`]
      })
      return { head: ['LAST', 'TIMES', 'ACTION', 'WHAT', 'WHO', 'WHY'], rows }
    },
  },
  sessionOptions,
)
