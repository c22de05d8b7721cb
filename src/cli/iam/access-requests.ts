// Commands to list, approve and deny requests to join an organization.
import type { AccessRequestJson } from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { organizationOf, uidFrom } from '../framework/names.ts'
import { findRole } from './resources.ts'

const base = '/control/v1/accessRequests'
const uidArgument = { name: '<uid>', summary: 'Uid of the access request, from pinfold access-requests list' }

const list = listCommand({
  arguments: [{ name: '<organization>', summary: 'Organization: name or uid' }],
  usual: Number.POSITIVE_INFINITY,
  options: [outputOption],
  async run(api, options) {
    const uid = await organizationOf(api, String(options.organization))
    const { items, more } = await api.selected<AccessRequestJson>(`${base}/${uid}`, 'accessRequests', {})
    const rows = items.map(({ uid, email, name, askTime }) => [uid, email, name, askTime])
    return { json: { items }, head: ['UID', 'EMAIL', 'NAME', 'REQUESTED'], rows, more }
  },
})

const approve = apiCommand({
  arguments: [uidArgument],
  options: [{ flags: '--role <role>', summary: 'Role in the organization: name or uid', required: true }],
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

const requestOf = (uid: unknown) => uidFrom(uid, 'pinfold access-requests list ORG shows the uids of requests')

export const accessRequests: Commands = { list, approve, deny: refuse }
