// Who asks to get into an organisation, and how that is answered.
import { isUid } from '#lib/uid.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { CliError, type Command, type Commands, exitCodes, outputOption } from '../shape/command.ts'
import { organizationOf } from '../shape/names.ts'
import { jsonText, table } from '../shape/plain-text.ts'
import { roles } from './resources.ts'

type AccessRequest = { uid: string; identityUid: string; name?: string; email: string; askTime: string }

const base = '/control/v1/accessRequests'
const uidArgument = { name: '<uid>', summary: 'The request, as list shows it' }

const list: Command = {
  arguments: [{ name: '<organization>', summary: 'The organisation: its name or uid' }],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await organizationOf(api, String(options.organization))
    const { items } = await api.list<AccessRequest>(`${base}/${uid}`, 'accessRequests', {})
    if (options.output === 'json') terminal.print(jsonText({ items }, 2))
    else {
      const rows = items.map(({ uid, email, name = '', askTime }) => [uid, email, name, askTime])
      for (const line of table([['UID', 'ADDRESS', 'NAME', 'ASKED'], ...rows])) terminal.print(line)
    }
    return exitCodes.ok
  },
}

const approve: Command = {
  arguments: [uidArgument],
  options: [{ flags: '--role <role>', summary: 'The role: its name or uid', required: true }, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const path = `${base}/${requestOf(options.uid)}:approve`
    const { roleBindingUid } = await api.call('POST', path, { roleUid: await roles.find(api, String(options.role)) })
    if (roleBindingUid) terminal.print(String(roleBindingUid))
    return exitCodes.ok
  },
}

const refuse: Command = {
  arguments: [uidArgument],
  options: callerOptions,
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    await api.call('POST', `${base}/${requestOf(options.uid)}:refuse`, {})
    return exitCodes.ok
  },
}

function requestOf(given: unknown): string {
  const text = String(given)
  if (!isUid(text)) throw new CliError(exitCodes.usage, 'a request is named by its uid')
  return text
}

export const accessRequests: Commands = { list, approve, refuse }
