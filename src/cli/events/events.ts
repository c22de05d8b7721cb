// Events, as others are told of them: subscriptions, with what became of what was sent, and the stream.
import type { Body } from '../shape/api-client.ts'
import { type Command, type Commands, exitCodes, type OptionSpec } from '../shape/command.ts'
import { sessionOptions } from '../shape/session.ts'
import { replay } from './events-replay.ts'
import { limitOf } from './page-limit.ts'
import { base, common, type Subscription, show, target, whichArgument } from './subscription-calls.ts'

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

const parentOption: OptionSpec = {
  flags: '--parent <group>',
  summary: 'A group by uid or an organisation by name; your own unless given',
}

const create: Command = {
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
    ...common,
  ],
  async run(terminal, options) {
    const { call, parent } = await target(terminal, options)
    const made = (await call('POST', `${base}/${await parent()}`, { sink: options.sink })) as Body & Subscription
    const types = (options.type ?? []) as string[]
    try {
      if (types.length > 0) await call('PATCH', `${base}/${made.uid}/settings`, { types })
    } catch (error) {
      await call('DELETE', `${base}/${made.uid}`)
      throw error
    }
    const { secret } = (await call('POST', `${base}/${made.uid}:rotateSecret`, {})) as { secret: string }
    const rows = [
      ['uid', made.uid],
      ['sink', made.sink],
      ['types', types.join(', ') || 'all'],
    ]
    show(terminal, options, { ...made, types, secret }, rows)
    if (options.output !== 'json') terminal.print(`secret  ${secret}`)
    return exitCodes.ok
  },
}

const list: Command = {
  options: [{ ...parentOption, summary: 'Only those of this group and below' }, ...common],
  async run(terminal, options) {
    const { call, parent, subscriptions } = await target(terminal, options)
    const scope = options.parent === undefined ? {} : { 'uidp.descendants_of': await parent() }
    const { items } = await subscriptions(scope)
    const found: (Subscription & Settings)[] = []
    for (const one of items) {
      found.push({ ...((await call('GET', `${base}/${one.uid}/settings`)) as Settings), ...one })
    }
    const rows = found.map((one) => [one.uid, one.sink, one.waiting ?? '0', one.givenUp ?? '0', stateOf(one)])
    show(terminal, options, { items: found }, [['UID', 'SINK', 'WAITING', 'GIVEN UP', 'STATE'], ...rows])
    return exitCodes.ok
  },
}

function stateOf({ paused, pauseReason, blockedUntil, behindTime }: Settings): string {
  const behind = behindTime ? `; behind since ${behindTime}` : ''
  if (paused) return `paused: ${pauseReason || 'no reason given'}${behind}`
  return (blockedUntil ? `the sink fails; tried again at ${blockedUntil}` : 'ok') + behind
}

const remove: Command = {
  arguments: [whichArgument],
  options: sessionOptions,
  async run(terminal, options) {
    const { call, uid } = await target(terminal, options)
    await call('DELETE', `${base}/${uid}`)
    return exitCodes.ok
  },
}

const test: Command = {
  details: 'Ends with 1 when the receiver has not answered with success.',
  arguments: [whichArgument],
  options: common,
  async run(terminal, options) {
    const { call, uid } = await target(terminal, options)
    const sent = (await call('POST', `${base}/${uid}:sendTest`, {})) as Body & Delivery
    show(terminal, options, sent, [[resultOf(sent)]])
    return sent.state === 'DELIVERED' ? exitCodes.ok : exitCodes.failed
  },
}

const states = { waiting: 'WAITING', delivered: 'DELIVERED', 'given-up': 'GIVEN_UP' } as const

const deliveries: Command = {
  arguments: [whichArgument],
  options: [
    { flags: '--state <state>', summary: 'Only these', choices: Object.keys(states) },
    { flags: '--limit <count>', summary: 'How many: 50 unless given, 200 at most' },
    ...common,
  ],
  async run(terminal, options) {
    const { call, uid } = await target(terminal, options)
    const state = options.state === undefined ? {} : { state: states[options.state as keyof typeof states] }
    const query = { page_size: limitOf(options), ...state }
    const page = (await call('GET', `${base}/${uid}/deliveries`, undefined, query)) as { deliveries?: Delivery[] }
    const items = page.deliveries ?? []
    const rows = items.map((one) => [one.uid, one.createTime, one.type || '(not kept)', one.state, resultOf(one)])
    show(terminal, options, { items }, [['UID', 'TIME', 'TYPE', 'STATE', 'LAST ATTEMPT'], ...rows])
    return exitCodes.ok
  },
}

function resultOf({ lastAttempt, attemptCount, nextAttemptTime }: Delivery): string {
  if (!lastAttempt) return 'not tried yet'
  const { result, status, durationMs } = lastAttempt
  const next = nextAttemptTime ? `, again at ${nextAttemptTime}` : ''
  const count = (attemptCount ?? 1) > 1 ? `, attempt ${attemptCount}` : ''
  return `${result}${status ? ` (${status})` : ''} in ${durationMs} ms${count}${next}`
}

export const subscriptions: Commands = { create, list, delete: remove, test, deliveries, replay }
