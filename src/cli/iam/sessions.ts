// Where somebody is signed in, and how that ends.
import { isUid } from '#lib/uid.ts'
import { send } from '../shape/api-client.ts'
import { apiReader } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
} from '../shape/command.ts'
import { organizationOf } from '../shape/names.ts'
import { jsonText, table } from '../shape/plain-text.ts'
import { sessionOptions } from '../shape/session.ts'

type Session = {
  uid: string
  kind: string
  name?: string
  email?: string
  remoteAddress?: string
  current?: boolean
  createTime: string
  lastUsedTime: string
}

const base = '/control/v1/sessions'
const ofOrganization = '/control/v1/organizationSessions'

const organizationOption: OptionSpec = {
  flags: '--organization <name>',
  summary: 'The sessions that the identity providers of an organisation vouch for, instead of your own',
}

const list: Command = {
  options: [organizationOption, outputOption, ...sessionOptions],
  async run(terminal, options) {
    const reader = await apiReader(terminal, options)
    const organization = await organizationIn(reader, options)
    const path = organization === undefined ? base : `${ofOrganization}/${organization}`
    const { items } = await reader.list<Session>(path, 'sessions', {})
    if (options.output === 'json') terminal.print(jsonText({ items }, 2))
    else {
      const rows = items.map((one) => {
        const { uid, kind, name, email, remoteAddress = '', current, createTime, lastUsedTime } = one
        return [uid, email || name || '', kind, remoteAddress, createTime, lastUsedTime, current ? 'this one' : '']
      })
      for (const line of table([['UID', 'WHO', 'KIND', 'FROM', 'BEGAN', 'LAST USED', ''], ...rows]))
        terminal.print(line)
    }
    return exitCodes.ok
  },
}

const end: Command = {
  arguments: [{ name: '<uid>', summary: 'The session, as list shows it' }],
  options: [organizationOption, ...sessionOptions],
  async run(terminal, options) {
    const uid = String(options.uid)
    if (!isUid(uid)) throw new CliError(exitCodes.usage, 'a session is named by its uid')
    const reader = await apiReader(terminal, options)
    const { session, token } = reader
    const organization = await organizationIn(reader, options)
    if (organization === undefined) await send('DELETE', new URL(`${base}/${uid}`, session.api), token)
    else {
      const url = new URL(`${ofOrganization}/${organization}:end`, session.api)
      await send('POST', url, token, { body: { sessionUid: uid } })
    }
    return exitCodes.ok
  },
}

async function organizationIn(api: ApiReader, { organization }: Options): Promise<string | undefined> {
  return organization === undefined ? undefined : organizationOf(api, String(organization))
}

export const sessions: Commands = { list, end }
