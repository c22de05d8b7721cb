// Commands to list and revoke sessions.
import type { SessionJson } from '#gen/pinfold/control/iam/v1/sessions_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { organizationOf, uidFrom } from '../framework/names.ts'
import { sessionOptions } from '../framework/session.ts'

const base = '/control/v1/sessions'
const ofOrganization = '/control/v1/organizationSessions'

const organizationOption: OptionSpec = {
  flags: '--in <organization>',
  summary: 'Organization, for sessions of the users of its identity providers; default: your own sessions',
  former: ['--organization <name>'],
}

const list = listCommand(
  {
    usual: Number.POSITIVE_INFINITY,
    options: [organizationOption, outputOption],
    async run(api, options) {
      const organization = await organizationIn(api, options)
      const path = organization === undefined ? base : `${ofOrganization}/${organization}`
      const { items, more } = await api.selected<SessionJson>(path, 'sessions', {})
      const rows = items.map((one) => {
        const { uid, kind, name, email, remoteAddress, current, createTime, lastUsedTime } = one
        return [uid, email || name, kind, remoteAddress, createTime, lastUsedTime, current ? 'this session' : '']
      })
      return { json: { items }, head: ['UID', 'USER', 'KIND', 'ADDRESS', 'STARTED', 'LAST USED', ''], rows, more }
    },
  },
  sessionOptions,
)

const end = apiCommand(
  {
    arguments: [{ name: '<uid>', summary: 'Uid of the session, from pinfold sessions list' }],
    options: [organizationOption],
    check: ({ uid }) => void uidFrom(uid, 'pinfold sessions list shows the uids of sessions'),
    async run(api, options) {
      const organization = await organizationIn(api, options)
      if (organization === undefined) await api.call('DELETE', `${base}/${options.uid}`)
      else await api.call('POST', `${ofOrganization}/${organization}:end`, { sessionUid: options.uid })
    },
  },
  sessionOptions,
)

async function organizationIn(api: ApiReader, { in: organization }: Options): Promise<string | undefined> {
  return organization === undefined ? undefined : organizationOf(api, String(organization))
}

export const sessions: Commands = { list, revoke: end }
