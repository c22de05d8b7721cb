import type { Call, Handlers } from '#app.ts'
import {
  SessionEndedSchema,
  type Session as SessionMessage,
  SessionSchema,
  SessionStartedSchema,
  SessionsService,
} from '#gen/pinfold/control/iam/v1/sessions_pb.ts'
import { deleting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { type Session, sessionFields, toSessionEndResource, toSignInResource } from './sessions.model.ts'
import * as service from './sessions.service.ts'

const { method } = SessionsService
const rules = { fields: sessionFields, defaultOrder: 'uid' }
const toSession = messageOf(SessionSchema, { remoteAddress: 'source' })
const toStarted = messageOf(SessionStartedSchema)
const toEnded = messageOf(SessionEndedSchema)

export const sessions: Handlers<typeof SessionsService> = {
  listSessions: listing(method.listSessions, rules, () => ({}), service.listSessions, toMessage),
  endSession: deleting('uid', service.endSession),

  listOrganizationSessions: listing(
    method.listOrganizationSessions,
    rules,
    ({ organization }) => ({ organization }),
    (call: Call, query) => service.listOrganizationSessions(call, query.filter.organization, query),
    (session, call) => toMessage(session, call),
  ),

  async endOrganizationSession(call, { organization, sessionUid }) {
    await service.endOrganizationSession(call, organization, sessionUid)
    return empty
  },

  async createConsoleCode(call) {
    const { code, expireTime } = await service.createConsoleCode(call)
    const url = `${call.url}/ui/enter`
    return { $typeName: 'pinfold.control.iam.v1.ConsoleCode', code, url, expireTime: timestamp(expireTime) }
  },
}

export const sessionEvents: readonly EventBody[] = [
  eventBody(SessionStartedSchema, toSignInResource, ({ session, ...signIn }) => {
    return toStarted({ ...signIn, session: toMessage(session) })
  }),
  eventBody(SessionEndedSchema, toSessionEndResource, ({ session, reason }) => {
    return toEnded({ uid: session.uid, organization: session.organization, reason })
  }),
]

function toMessage(session: Session, call?: Call): SessionMessage {
  const { profile, granted } = session
  const current = call?.caller.session?.uid === session.uid
  return toSession({ ...session, name: profile.name, email: profile.email, hasGroupRoles: granted.size > 0, current })
}
