// Registry for tests of retention. Each test has its own folder, and can move the clock ahead.
import { ok } from './expect.ts'
import { type Client, type Json, roleUids } from './pinfold.ts'
import { type RegistryClient, startRegistry } from './registry.ts'

/** Uids of a folder and of a repository in it, and the repository's name for pushes. */
export type TestRepo = { folder: string; repo: string; name: string }

export async function startRetentionLocks() {
  const clock = { now: Date.parse('2026-05-01T10:00:00.000Z') }
  const registry = await startRegistry({ clock: () => new Date(clock.now) })
  const { org, pusher, seed } = registry
  const { uid: ownerUid } = await seed.member(org.uid, roleUids.owner)
  // Tokens expire after one hour of this clock.
  const owner = (): Promise<Client> => registry.as(ownerUid)
  const pushing = (): Promise<RegistryClient> => registry.registryAs(pusher.uid)
  let made = 0
  return {
    ...registry,
    clock,
    owner,
    pushing,
    async createRepo(): Promise<TestRepo> {
      const api = await owner()
      const folder: string = ok(await api.post(`/iam/v2/groups/${org.uid}`, { name: `g${++made}` })).uid
      const repo: string = ok(await api.post(`/registry/v2/repos/${folder}`, { name: 'app' })).uid
      return { folder, repo, name: `acme/g${made}/app` }
    },
    /** Creates a rule and returns its uid. */
    rule: async (scope: string, says: Json): Promise<string> =>
      ok(await (await owner()).post(`/registry/v2/retentionRules/${scope}`, { mode: 'ENFORCE', ...says })).uid,
  }
}
