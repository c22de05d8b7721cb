// Commands for requests to join an organization, and for answering them.
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { organizationOf } from '../framework/names.ts'
import { findRole } from './resources.ts'

type AccessRequest = { uid: string; identityUid: string; name?: string; email: string; askTime: string }

const base = '/control/v1/accessRequests'
const uidArgument = { name: '<uid>', summary: 'The request, as list shows it' }

const list = apiCommand({
  arguments: [{ name: '<organization>', summary: 'The organisation: its name or uid' }],
  options: [outputOption],
  async run(api, options) {
    const uid = await organizationOf(api, String(options.organization))
    const { items } = await api.list<AccessRequest>(`${base}/${uid}`, 'accessRequests', {})
    const rows = items.map(({ uid, email, name = '', askTime }) => [uid, email, name, askTime])
    return { json: { items }, head: ['UID', 'ADDRESS', 'NAME', 'ASKED'], rows }
  },
})

const approve = apiCommand({
  arguments: [uidArgument],
  options: [{ flags: '--role <role>', summary: 'The role: its name or uid', required: true }],
  async run(api, options) {
    const path = `${base}/${requestOf(options.uid)}:approve`
    const { roleBindingUid } = await api.call('POST', path, { roleUid: await findRole(api, String(options.role)) })
    return roleBindingUid ? { text: String(roleBindingUid) } : {}
  },
})

const refuse = apiCommand({
  arguments: [uidArgument],
  options: [],
  async run(api, options) {
    await api.call('POST', `${base}/${requestOf(options.uid)}:refuse`, {})
  },
})

function requestOf(given: unknown): string {
  const text = String(given)
  if (!isUid(text)) throw usageError('a request is named by its uid')
  return text
}

export const accessRequests: Commands = { list, approve, refuse }
