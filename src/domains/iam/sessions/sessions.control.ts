import type { Call, Handlers } from '#app.ts'
import {
  SessionEndedSchema,
  type Session as SessionMessage,
  SessionStartedSchema,
  type SessionsService,
} from '#gen/pinfold/control/iam/v1/sessions_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aSessionEnd, aSignIn, type EndedSession, type Session, type SignIn, sessionFields } from './sessions.model.ts'
import * as service from './sessions.service.ts'

const rules = { fields: sessionFields, defaultOrder: 'uid' }
const response = 'pinfold.control.iam.v1.ListSessionsResponse'

export const sessions: Handlers<typeof SessionsService> = {
  async listSessions(call, request) {
    const listed = await service.listSessions(call, readList(call, request, rules, {}))
    return listResponse(response, 'sessions', listed, (one) => toMessage(one, call), request)
  },

  async endSession(call, { uid }) {
    await service.endSession(call, uid)
    return empty
  },

  async listOrganizationSessions(call, request) {
    const { organization } = request
    const query = readList(call, request, rules, { organization })
    const listed = await service.listOrganizationSessions(call, organization, query)
    return listResponse(response, 'sessions', listed, (one) => toMessage(one, call), request)
  },

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
  eventBody(SessionStartedSchema, aSignIn, ({ session, groupRoles, groupsLeftOut }: SignIn) => ({
    $typeName: 'pinfold.control.iam.v1.SessionStarted' as const,
    session: toMessage(session),
    groupRoles: groupRoles.map((one) => ({ $typeName: 'pinfold.control.iam.v1.GroupRole' as const, ...one })),
    groupsLeftOut,
  })),
  eventBody(SessionEndedSchema, aSessionEnd, ({ session: { uid, organization }, reason }: EndedSession) => ({
    $typeName: 'pinfold.control.iam.v1.SessionEnded' as const,
    uid,
    organization,
    reason,
  })),
]

function toMessage(session: Session, call?: Call): SessionMessage {
  const { uid, kind, provider, organization, profile, source, userAgent, granted } = session
  return {
    $typeName: 'pinfold.control.iam.v1.Session',
    uid,
    kind,
    provider,
    organization,
    name: profile.name,
    email: profile.email,
    remoteAddress: source,
    userAgent,
    hasGroupRoles: granted.size > 0,
    current: call?.caller.session?.uid === uid,
    createTime: timestamp(session.createTime),
    lastUsedTime: timestamp(session.lastUsedTime),
    endTime: timestamp(session.endTime),
    expireTime: timestamp(session.expireTime),
  }
}
