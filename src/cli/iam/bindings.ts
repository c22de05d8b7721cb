// Commands for role bindings that are pending until their user accepts them.
import type { PendingBindingJson } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { type Command, type Commands, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { uidFrom } from '../framework/names.ts'
import { sessionOptions } from '../framework/session.ts'
import { removeTokens, userFiles } from '../framework/user-files.ts'

const base = '/control/v1/pendingBindings'

const pending = listCommand(
  {
    usual: Number.POSITIVE_INFINITY,
    options: [outputOption],
    async run(api) {
      const { items, more } = await api.selected<PendingBindingJson>(base, 'pendingBindings', {})
      const rows = items.map((one) => {
        const { uid, organization, group, role, createdBy, createdByName, createTime } = one
        return [uid, organization, group, role, createdByName || createdBy, createTime]
      })
      return { json: { items }, head: ['UID', 'ORGANIZATION', 'SCOPE', 'ROLE', 'GRANTED BY', 'TIME'], rows, more }
    },
  },
  sessionOptions,
)

const answer = (verb: 'accept' | 'refuse'): Command =>
  apiCommand(
    {
      arguments: [{ name: '<uid>', summary: 'Uid of the role binding, from pinfold invitations pending' }],
      options: [],
      check: ({ uid }) => void uidFrom(uid, 'pinfold invitations pending shows the uids'),
      async run(api, { uid }, { env }) {
        const { acceptedUids = [] } = await api.call('POST', `${base}/${uid}:${verb}`, {})
        // Stored tokens do not have the new roles.
        if (verb === 'accept') removeTokens(userFiles(env))
        return { text: acceptedUids as string[] }
      },
    },
    sessionOptions,
  )

export const bindings: Commands = { pending, accept: answer('accept'), decline: answer('refuse') }
