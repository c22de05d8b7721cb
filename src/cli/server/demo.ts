// Example company for an empty server. It is created by API requests that any client could send.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { signAccessToken } from '#issuer/sign-token.ts'
import { operatorUid } from '#lib/uid.ts'
import { type DemoGroup, demoCompany } from './demo-data.ts'
import { demoBuilds, demoImage, demoSource, manifestType } from './demo-images.ts'
import { demoHistory } from './demo-tags.ts'

type Answer = { uid: string; name: string; totalCount: string; roles: Answer[]; run: object }
type Send = (method: 'GET' | 'POST', path: string, body?: object) => Promise<Answer>
/** Uids by name, of the identities and roles that were created so far. */
type Known = { identities: ReadonlyMap<string, string>; roles: ReadonlyMap<string, string> }

/** Creates the example company and returns true. If the server already has an organization, does nothing and returns false. */
export async function fillDemo(app: App, server: Server): Promise<boolean> {
  const token = { issuer: server.url, subject: operatorUid, audience: server.url, now: app.clock() }
  const send = sendTo(server.localUrl, await signAccessToken(app.keyring, token))

  const groups = await send('GET', '/iam/v2/groups?uidp.in_root=true&page_size=1')
  if (groups.totalCount !== '0') return false
  const builtIn = await send('GET', '/iam/v2/roles?uidp.in_root=true&page_size=200')
  const known: Known = { identities: new Map(), roles: uidsByName(builtIn.roles) }
  const companies = demoCompany(app.config.publicOrg)
  for (const organization of companies) await addGroup(send, '', organization, known)
  await addKnowledge(send)
  const audience = new URL(server.url).host
  const registry = { base: server.localUrl, token: await signAccessToken(app.keyring, { ...token, audience }) }
  await pushBuilds(registry, pathOf(companies[0]!, demoBuilds.folder)!.join('/'))
  return true
}

/** Names of the groups from the organization down to the folder. */
function pathOf({ name, folders = [] }: DemoGroup, folder: string): readonly string[] | undefined {
  if (name === folder) return [name]
  const below = folders.flatMap((one) => pathOf(one, folder) ?? [])
  return below.length > 0 ? [name, ...below] : undefined
}

async function addKnowledge(send: Send): Promise<void> {
  const { source, records } = demoSource
  const { run } = await send('POST', '/control/v1/vulnerabilitySources:begin', { source })
  await send('POST', '/control/v1/vulnerabilitySources:put', { run, records })
  await send('POST', '/control/v1/vulnerabilitySources:finish', { run, complete: false })
}

async function pushBuilds({ base, token }: { base: string; token: string }, folder: string): Promise<void> {
  const put = async (method: 'POST' | 'PUT', path: string, type: string, body: string | Buffer): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type }
    const res = await fetch(`${base}/v2/${folder}/${demoBuilds.repo}/${path}`, { method, headers, body })
    if (!res.ok)
      throw new Error(
        `the demo images could not be pushed: ${method} ${path} answered ${res.status} ${await res.text()}`,
      )
  }
  for (const { tags, packages } of demoBuilds.builds) {
    const { blobs, manifest } = await demoImage(packages)
    for (const [digest, content] of blobs) {
      await put('POST', `blobs/uploads/?digest=${digest}`, 'application/octet-stream', content)
    }
    for (const tag of tags) await put('PUT', `manifests/${tag}`, manifestType, manifest)
  }
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
    const made = await send('POST', `/registry/v2/repos/${uid}`, { name: repo, description: about })
    const history = demoHistory(repo, made.uid, new Date())
    if (history) await send('POST', '/control/v1/tagHistory:import', history)
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
