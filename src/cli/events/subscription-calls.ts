// How the commands of subscriptions ask the server, and show what it answers.
import { isUid } from '#lib/uid.ts'
import { type Body, send } from '../shape/api-client.ts'
import { apiReader, parentOf } from '../shape/api-pages.ts'
import type { ApiReader, Query } from '../shape/api-reader.ts'
import {
  type ArgumentSpec,
  CliError,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
  type Terminal,
} from '../shape/command.ts'
import { NothingNamed } from '../shape/names.ts'
import { jsonText, plain, table } from '../shape/plain-text.ts'
import { sessionOptions } from '../shape/session.ts'

export type Method = Parameters<typeof send>[0]
type Call = (method: Method, path: string, body?: object, query?: Record<string, string>) => Promise<Body>
export type Subscription = { uid: string; sink: string; createTime: string }

export const base = '/events/v2/subscriptions'
export const common: readonly OptionSpec[] = [outputOption, ...sessionOptions]
export const whichArgument: ArgumentSpec = {
  name: '<subscription>',
  summary: 'Its uid, or where it sends to if only one sends there',
}

/** The session's API, and the uid that was given where the command takes one. */
export async function target(
  terminal: Terminal,
  options: Options,
): Promise<{
  call: Call
  uid: string
  parent(): Promise<string>
  subscriptions(scope: Query): Promise<{ items: Subscription[] }>
}> {
  const reader = await apiReader(terminal, options)
  const { session, token } = reader
  const given = options.subscription
  const uid = given === undefined ? '' : await subscriptionOf(reader, String(given))
  const call: Call = (method, path, body, query = {}) => {
    const url = new URL(path, session.api)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return send(method, url, token, { body })
  }
  return {
    call,
    uid,
    parent: () => parentOf(reader, options.parent),
    subscriptions: (scope) => reader.list<Subscription>(base, 'subscriptions', scope),
  }
}

async function subscriptionOf(api: ApiReader, given: string): Promise<string> {
  if (isUid(given)) return given
  if (given === '') throw new CliError(exitCodes.usage, 'say which subscription: its uid is empty')
  const { items } = await api.list<Subscription>(base, 'subscriptions', {})
  const [found, ...others] = items.filter(({ sink }) => sink === given).map(({ uid }) => uid)
  if (found === undefined) {
    const hint = 'pinfold events subscriptions list shows those that there are'
    throw new NothingNamed(`there is no subscription ${plain(given)} that you can see\n${hint}`)
  }
  if (others.length === 0) return found
  const uids = [found, ...others].join('\n')
  throw new CliError(exitCodes.failed, `several subscriptions send there; name one by its uid:\n${uids}`)
}

export function show(terminal: Terminal, options: Options, value: object, rows: readonly (readonly string[])[]): void {
  if (options.output === 'json') terminal.print(jsonText(value, 2))
  else for (const line of table(rows)) terminal.print(line)
}
