// How the commands of subscriptions ask the server, and show what it answers.
import { isUid } from '#lib/uid.ts'
import { type Body, send } from '../shape/api-client.ts'
import { apiReader, parentOf } from '../shape/api-pages.ts'
import type { Query } from '../shape/api-reader.ts'
import {
  type ArgumentSpec,
  CliError,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
  type Terminal,
} from '../shape/command.ts'
import { jsonText, table } from '../shape/plain-text.ts'
import { sessionOptions } from '../shape/session.ts'

export type Method = Parameters<typeof send>[0]
type Call = (method: Method, path: string, body?: object, query?: Record<string, string>) => Promise<Body>
export type Subscription = { uid: string; sink: string; createTime: string }

export const base = '/events/v2/subscriptions'
export const common: readonly OptionSpec[] = [outputOption, ...sessionOptions]
export const uidArgument: ArgumentSpec = { name: '<uid>', summary: 'The subscription, as list shows it' }

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
  const uid = String(options.uid ?? '')
  if (options.uid !== undefined && !isUid(uid)) {
    throw new CliError(exitCodes.usage, 'a subscription is named by its uid')
  }
  const reader = await apiReader(terminal, options)
  const { session, token } = reader
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

export function show(terminal: Terminal, options: Options, value: object, rows: readonly (readonly string[])[]): void {
  if (options.output === 'json') terminal.print(jsonText(value, 2))
  else for (const line of table(rows)) terminal.print(line)
}
