import type { Handlers } from '#app.ts'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { capabilities, maskOf, withIncluded } from '#domains/iam/access/capabilities.ts'
import { findGroupName } from '#domains/iam/groups/groups.service.ts'
import { findIdentityForExchange } from '#domains/iam/identities/identities.service.ts'
import { type Registration, toRegistrationResource } from '#domains/iam/invites/registration.service.ts'
import { deleteOwnAccount } from '#domains/iam/sessions/own-account.service.ts'
import { Auth, type Profile, type Session, type WhoAmI_Capability } from '#gen/pinfold/auth/v1/auth_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { fetchForProgram } from './people/headless.ts'
import { register } from './register.ts'

const rolesByMask = new Map(builtInRoles.map((role) => [withIncluded(maskOf(role.capabilities)), role]))

export const auth: Handlers<typeof Auth> = {
  /** Identity of the caller, with the caller's capabilities by group. */
  async validate(call) {
    const { token, uid, rights } = call.caller
    const held: WhoAmI_Capability[] = []
    for (const [uid, mask] of [...rights.grants()].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const group = { ...emptyGroup, id: uid, name: (await findGroupName(call.app.db, uid)) ?? '' }
      held.push({ $typeName: 'pinfold.platform.auth.WhoAmI.Capability', group, ...describe(mask) })
    }
    return {
      $typeName: 'pinfold.platform.auth.WhoAmI',
      issuer: call.url,
      subject: uid,
      audience: [...(token?.audience ?? [])],
      expiry: seconds(token?.expiry),
      issuedAt: seconds(token?.issuedAt),
      capabilities: held,
      email: (await findIdentityForExchange(call.app.db, uid))?.email ?? '',
      ...(token?.upstream && { profile: profileOf(token.upstream) }),
    }
  },

  async register(call, request) {
    return toSession(await register(call, request))
  },

  async getHeadlessSession(call, { code }) {
    const { publicKey, encrypted } = await fetchForProgram(call, code)
    return {
      $typeName: 'pinfold.platform.auth.HeadlessSession',
      ecdhPublicKey: new TextEncoder().encode(publicKey),
      encryptedIdtoken: encrypted,
    }
  },

  async delete(call, { id }) {
    await deleteOwnAccount(call, id)
    return empty
  },
}

export const authEvents: readonly EventBody[] = [eventBody(Auth.method.register, toRegistrationResource, toSession)]

const emptyGroup = {
  $typeName: 'pinfold.platform.iam.Group',
  description: '',
  resourceLimits: {},
  verified: false,
  kind: 0,
  status: 0,
} as const

/** Built-in role with exactly these capabilities and those that they include. Without such a role, the names of the capabilities. */
function describe(mask: bigint): Pick<WhoAmI_Capability, 'role' | 'capabilities'> {
  const role = rolesByMask.get(withIncluded(mask))
  if (role) {
    const { uid: id, name, description } = role
    return {
      role: { $typeName: 'pinfold.platform.iam.Role', id, name, description, capabilities: [] },
      capabilities: [],
    }
  }
  return { capabilities: [...capabilities.values()].filter((one) => (one.mask & mask) !== 0n).map((one) => one.name) }
}

function profileOf({ name = '', picture = '' }: Readonly<Record<string, string>>): Profile {
  return { $typeName: 'pinfold.platform.auth.Profile', name, picture, givenName: '', familyName: '' }
}

function seconds(time: number | undefined): ReturnType<typeof timestamp> {
  return timestamp(new Date((time ?? 0) * 1000).toISOString())
}

function toSession(registration: Registration): Session {
  return { $typeName: 'pinfold.platform.auth.Session', ...registration }
}
