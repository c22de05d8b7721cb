// Members of the demo organization. They accept invitations, so that the audit log shows who invited them.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { registerPerson } from '#domains/iam/invites/registration.service.ts'
import { ownCause } from '#lib/cause.ts'
import { clientAs, type DemoClient } from './client.ts'

const issuer = 'https://people.demo.example'

/** Members by first name. Each has a full name and a role. */
const people = {
  ada: ['Ada Lovelace', 'owner'],
  grace: ['Grace Hopper', 'owner'],
  katherine: ['Katherine Johnson', 'editor'],
  alan: ['Alan Turing', 'editor'],
  jean: ['Jean Bartik', 'viewer'],
} as const
type PersonName = keyof typeof people

export type DemoPeople = Readonly<Record<PersonName, { uid: string; client: DemoClient }>>

/** Adds the members. The operator invites the first one, who invites the others. `roles` are the uids of built-in roles. */
export async function addPeople(
  app: App,
  server: Server,
  { operator, organization, roles }: { operator: DemoClient; organization: string; roles: ReadonlyMap<string, string> },
): Promise<DemoPeople> {
  let inviter = operator
  const added: [string, { uid: string; client: DemoClient }][] = []
  for (const [first, [name, role]] of Object.entries(people)) {
    const email = `${first}@acme.example`
    const invite = { roleUid: roles.get(role), email, ttl: '604800s' }
    const { code } = await inviter.post(`/iam/v2/groupInvites/${organization}`, invite)
    const work = { app, cause: ownCause(app.clock), log: app.log }
    const person = { issuer, subject: first, name, email, emailVerified: true }
    const uid = (await registerPerson(work, person, code)).identity
    const client = await clientAs(app, server, uid)
    if (inviter === operator) inviter = client
    added.push([first, { uid, client }])
  }
  return Object.fromEntries(added) as DemoPeople
}
