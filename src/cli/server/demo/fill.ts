// Example company for an empty server. It is created by requests that any client could send, as its operator, people and workloads.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { operatorUid } from '#lib/uid.ts'
import { addActivity } from './activity.ts'
import { type Answer, clientAs, type DemoClient } from './client.ts'
import { type DemoGroup, demoCompany } from './company.ts'
import { addKnowledge, addSource } from './knowledge.ts'
import { addPeople } from './people.ts'
import { demoReleases, publicBuild } from './releases.ts'
import { addIntegrations, addRules, type DemoUids } from './rules.ts'

/** Uids by name, of the identities and roles that were created so far. */
type Known = { identities: ReadonlyMap<string, string>; roles: ReadonlyMap<string, string> }
/** Repository to fill: its path, its uid, and the uid of the identity that pushes to it. */
type NewRepo = { key: string; path: string; uid: string; pusher: string }
/** Everything that was created, by name. Repositories of the company have the key `folder/name`. */
type Made = {
  groups: Map<string, string>
  repos: Map<string, string>
  identities: Map<string, string>
  added: NewRepo[]
}

/** Creates the example company and returns true. If the server already has an organization, does nothing and returns false. */
export async function fillDemo(app: App, server: Server, peer: string): Promise<boolean> {
  const operator = await clientAs(app, server, operatorUid)
  const groups = await operator.get('/iam/v2/groups?uidp.in_root=true&page_size=1')
  if (groups.totalCount !== '0') return false
  await addSource(operator)
  const roles = uidsByName((await operator.get('/iam/v2/roles?uidp.in_root=true&page_size=200')).roles)
  const [company, shared] = demoCompany(app.config.publicOrg) as [DemoGroup, DemoGroup]
  // The console opens the newest organization first, so the company comes last.
  const opened = await operator.post('/iam/v2/groups/', named(shared))
  const organization = (await operator.post('/iam/v2/groups/', named(company))).uid
  const people = await addPeople(app, server, { operator, organization, roles })
  const known: Known = { identities: new Map(), roles }
  const [made, open] = [emptyMade(), emptyMade()]
  await addContent(people.ada.client, { ...company, uid: organization, path: company.name }, known, made)
  await addContent(operator, { ...shared, uid: opened.uid, path: shared.name }, known, open)
  const uids: DemoUids = { organization, ...made }
  // The webhook exists before the first push, so the receiver gets the events of all pushes.
  await addIntegrations(operator, people, uids, peer)
  await addKnowledge(operator, organization)
  const oldest = await pushReleases(app, server, operator, made.added)
  await pushShared(app, server, open.added)
  await addRules(people, uids, oldest)
  await addActivity(app, server, people, { company: company.name, identities: made.identities, oldest })
  return true
}

const named = ({ name, description }: DemoGroup) => ({ name, description })
const emptyMade = (): Made => ({ groups: new Map(), repos: new Map(), identities: new Map(), added: [] })

type Placed = DemoGroup & { uid: string; path: string }

/** Creates roles, identities, bindings, repositories and folders of a group. */
async function addContent(client: DemoClient, group: Placed, above: Known, made: Made, pusher = ''): Promise<void> {
  const { name, uid, path } = group
  made.groups.set(name, uid)
  const roles = new Map(above.roles)
  for (const role of group.roles ?? []) roles.set(role.name, (await client.post(`/iam/v2/roles/${uid}`, role)).uid)
  const identities = new Map(above.identities)
  for (const identity of group.identities ?? []) {
    const created = await client.post(`/iam/v2/identities/${uid}`, identity)
    identities.set(identity.name, created.uid)
    made.identities.set(identity.name, created.uid)
  }
  let pushes = pusher
  for (const [identity, role] of group.bindings ?? []) {
    const identityUid = identities.get(identity)!
    await client.post(`/iam/v2/roleBindings/${uid}`, { identityUid, roleUid: roles.get(role) })
    if (role === 'registry.push') pushes = identityUid
  }
  for (const [repo, about] of Object.entries(group.repos ?? {})) {
    const created = await client.post(`/registry/v2/repos/${uid}`, { name: repo, description: about })
    const key = `${name}/${repo}`
    made.repos.set(key, created.uid)
    made.added.push({ key, path: `${path}/${repo}`, uid: created.uid, pusher: pushes })
  }
  for (const { name: below, description, ...folder } of group.folders ?? []) {
    const created = await client.post(`/iam/v2/groups/${uid}`, { name: below, description })
    const placed = { ...folder, name: below, description, uid: created.uid, path: `${path}/${below}` }
    await addContent(client, placed, { identities, roles }, made, pushes)
  }
}

/** Pushes the images of the company and imports their tag history. Returns the digest of the first build of each repository. */
async function pushReleases(
  app: App,
  server: Server,
  operator: DemoClient,
  repos: readonly NewRepo[],
): Promise<ReadonlyMap<string, string>> {
  const oldest = new Map<string, string>()
  await eachAtOnce(repos, async ({ key, path, uid, pusher }) => {
    const now = app.clock()
    const [folder, repo] = key.split('/') as [string, string]
    const releases = await demoReleases(folder, repo, now)
    if (!releases) return
    const client = await clientAs(app, server, pusher)
    for (const { image, sbom, daysAgo } of releases.builds) {
      if (daysAgo > 0) await client.push(path, image)
      if (sbom && daysAgo > 0) await client.push(path, sbom)
    }
    // An import records past times in the tag history, and a push records the present time.
    const tags = [...releases.moves].map(([name, records]) => ({ name, records }))
    await operator.post('/control/v1/tagHistory:import', { repoUid: uid, tags })
    const { newest } = releases
    if (newest) {
      await client.push(path, newest.build.image, newest.tags)
      if (newest.build.sbom) await client.push(path, newest.build.sbom)
    }
    oldest.set(key, releases.builds[0]!.image.digest)
  })
  return oldest
}

async function pushShared(app: App, server: Server, repos: readonly NewRepo[]): Promise<void> {
  await eachAtOnce(repos, async ({ key, path, pusher }) => {
    const { image } = await publicBuild(key.split('/')[1]!, app.clock())
    await (await clientAs(app, server, pusher)).push(path, image, ['latest'])
  })
}

/** Runs the work for a few items at once. */
async function eachAtOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  const run = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: 4 }, run))
}

function uidsByName(items: readonly Answer[]): Map<string, string> {
  return new Map(items.map(({ name, uid }) => [name, uid]))
}
