// Role bindings that a person has to accept before they count.
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, outputOption } from '../framework/command.ts'
import { sessionOptions } from '../framework/session.ts'

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

const pending = apiCommand(
  {
    options: [outputOption],
    async run({ list }) {
      const { items } = await list<PendingBinding>(base, 'pendingBindings', {})
      const rows = items.map((one) => {
        const { uid, organization, group, role, createdBy, createdByName, createTime } = one
        return [uid, organization, group, role, createdByName || createdBy, createTime]
      })
      return { json: { items }, head: ['UID', 'ORGANISATION', 'ON', 'ROLE', 'GIVEN BY', 'TIME'], rows }
    },
  },
  sessionOptions,
)

const answer = (verb: 'accept' | 'refuse'): Command =>
  apiCommand(
    {
      arguments: [{ name: '<uid>', summary: 'The binding, as pending shows it' }],
      options: [],
      check({ uid }) {
        if (!isUid(String(uid))) throw usageError('a binding is named by its uid')
      },
      async run(api, { uid }) {
        const { acceptedUids = [] } = await api.call('POST', `${base}/${uid}:${verb}`, {})
        return { text: acceptedUids as string[] }
      },
    },
    sessionOptions,
  )

export const bindings: Commands = { pending, accept: answer('accept'), refuse: answer('refuse') }
