// What others have bound a person to: it counts once the person has accepted.
import { isUid } from '#lib/uid.ts'
import { send } from '../shape/api-client.ts'
import { apiReader } from '../shape/api-pages.ts'
import {
  type ArgumentSpec,
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type Options,
  outputOption,
  type Terminal,
} from '../shape/command.ts'
import { jsonText, plain, table } from '../shape/plain-text.ts'
import { sessionOptions } from '../shape/session.ts'

type PendingBinding = {
  uid: string
  organization: string
  group: string
  role: string
  createdBy: string
  createdByName?: string
  createTime: string
}

const base = '/control/v1/pendingBindings'
const uidArgument: ArgumentSpec = { name: '<uid>', summary: 'The binding, as pending shows it' }

const pending: Command = {
  options: [outputOption, ...sessionOptions],
  async run(terminal, options) {
    const { list } = await apiReader(terminal, options)
    const { items } = await list<PendingBinding>(base, 'pendingBindings', {})
    if (options.output === 'json') terminal.print(jsonText({ items }, 2))
    else {
      const rows = items.map((one) => {
        const { uid, organization, group, role, createdBy, createdByName, createTime } = one
        return [uid, organization, group, role, createdByName || createdBy, createTime]
      })
      for (const line of table([['UID', 'ORGANISATION', 'ON', 'ROLE', 'GIVEN BY', 'TIME'], ...rows]))
        terminal.print(line)
    }
    return exitCodes.ok
  },
}

const accept: Command = {
  arguments: [uidArgument],
  options: sessionOptions,
  async run(terminal, options) {
    const { acceptedUids = [] } = await answer(terminal, options, 'accept')
    for (const uid of acceptedUids as string[]) terminal.print(plain(uid))
    return exitCodes.ok
  },
}

const refuse: Command = {
  arguments: [uidArgument],
  options: sessionOptions,
  async run(terminal, options) {
    await answer(terminal, options, 'refuse')
    return exitCodes.ok
  },
}

async function answer(terminal: Terminal, options: Options, verb: 'accept' | 'refuse') {
  const uid = String(options.uid)
  if (!isUid(uid)) throw new CliError(exitCodes.usage, 'a binding is named by its uid')
  const { session, token } = await apiReader(terminal, options)
  return send('POST', new URL(`${base}/${uid}:${verb}`, session.api), token, { body: {} })
}

export const bindings: Commands = { pending, accept, refuse }
