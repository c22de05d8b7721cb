// Fills an empty server with the example company, by the same requests that any client would send.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { signAccessToken } from '#issuer/sign-token.ts'
import { operatorUid } from '#lib/uid.ts'
import { type DemoGroup, demoCompany } from './demo-data.ts'

type Answer = { uid: string; name: string; totalCount: string; roles: Answer[] }
type Send = (method: 'GET' | 'POST', path: string, body?: object) => Promise<Answer>
/** Uids by name: of the identities and of the roles that can be bound so far. */
type Known = { identities: ReadonlyMap<string, string>; roles: ReadonlyMap<string, string> }

/** Does nothing and returns false when the server has an organisation already. */
export async function fillDemo(app: App, server: Server): Promise<boolean> {
  const token = { issuer: server.url, subject: operatorUid, audience: server.url, now: app.clock() }
  const send = sendTo(server.localUrl, await signAccessToken(app.keyring, token))

  const groups = await send('GET', '/iam/v2/groups?uidp.in_root=true&page_size=1')
  if (groups.totalCount !== '0') return false
  const builtIn = await send('GET', '/iam/v2/roles?uidp.in_root=true&page_size=200')
  const known: Known = { identities: new Map(), roles: uidsByName(builtIn.roles) }
  for (const organisation of demoCompany(app.config.publicOrg)) await addGroup(send, '', organisation, known)
  return true
}

async function addGroup(send: Send, parent: string, group: DemoGroup, above: Known): Promise<void> {
  const { name, description } = group
  const { uid } = await send('POST', `/iam/v2/groups/${parent}`, { name, description })
  const roles = new Map(above.roles)
  for (const role of group.roles ?? []) roles.set(role.name, (await send('POST', `/iam/v2/roles/${uid}`, role)).uid)
  const identities = new Map(above.identities)
  for (const identity of group.identities ?? []) {
    identities.set(identity.name, (await send('POST', `/iam/v2/identities/${uid}`, identity)).uid)
  }
  for (const [identity, role] of group.bindings ?? []) {
    const body = { identityUid: identities.get(identity), roleUid: roles.get(role) }
    await send('POST', `/iam/v2/roleBindings/${uid}`, body)
  }
  for (const [repo, about] of Object.entries(group.repos ?? {})) {
    await send('POST', `/registry/v2/repos/${uid}`, { name: repo, description: about })
  }
  for (const folder of group.folders ?? []) await addGroup(send, uid, folder, { identities, roles })
}

function sendTo(base: string, token: string): Send {
  return async (method, path, body) => {
    const res = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await res.text()
    if (!res.ok) throw new Error(`the demo could not be added: ${method} ${path} answered ${res.status} ${text}`)
    return JSON.parse(text) as Answer
  }
}

function uidsByName(items: readonly Answer[]): Map<string, string> {
  return new Map(items.map(({ name, uid }) => [name, uid]))
}
